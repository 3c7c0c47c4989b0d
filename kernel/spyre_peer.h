/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_PEER_H
#define SPYRE_PEER_H

struct spyre_bo;
struct spyre_device;

int spyre_peer_on_bus(struct spyre_device *sdev, struct spyre_bo *bo);
void spyre_peer_off_bus(struct spyre_device *sdev, struct spyre_bo *bo);
void spyre_peers_revoke(struct spyre_device *sdev);

#endif
