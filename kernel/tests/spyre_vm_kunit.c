// SPDX-License-Identifier: GPL-2.0-only
/*
 * Address spaces: where bindings lie, what is in the tables, what comes back. No card answers here,
 * so what is unbound waits in limbo, as after a card that died.
 */
#include "spyre_kunit.h"

#define VM_MB	(SZ_1M >> PAGE_SHIFT)

/* A buffer of pages that are nobody's, in pieces of so many that are contiguous on the bus. */
static struct spyre_bo *vm_host(struct kunit *test, struct spyre_device *sdev, u32 pages, u32 piece,
				u64 dma)
{
	struct spyre_bo *bo = spyre_bo_new(sdev, (u64)pages << PAGE_SHIFT, SPYRE_KIND_HOST);
	u32 i;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, bo);
	bo->chunks = kvcalloc(DIV_ROUND_UP(pages, piece), sizeof(*bo->chunks), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bo->chunks);
	for (i = 0; i < pages; i += piece) {
		struct spyre_chunk *c = &bo->chunks[bo->nchunks++];

		c->first = i;
		c->npages = min(piece, pages - i);
		c->dma = dma;
		/* A hole between two pieces. */
		dma += ((u64)piece << PAGE_SHIFT) + SZ_16M;
	}
	return bo;
}

static u64 vm_entry(struct spyre_ctx *ctx, u32 table, u32 index)
{
	return readq(ctx->sdev->area + table + index * sizeof(u64));
}

/* What the card would find at a host address: a bus address, or 0. */
static u64 vm_walk(struct spyre_ctx *ctx, u64 addr)
{
	u32 seg = addr >> SPYRE_SEGMENT_SHIFT, page = (addr >> HMVA_SHIFT) % HOST_SEG_PAGES;
	u64 entry;

	if (!ctx->vm.table[SPYRE_SEGMENTS + seg])
		return 0;
	entry = vm_entry(ctx, ctx->vm.table[SPYRE_SEGMENTS + seg], page >> L2_SHIFT);
	if (!(entry & SPYRE_PTE_VALID))
		return 0;
	if (entry & SPYRE_PTE_LEAF)
		return (entry & GENMASK_ULL(51, SPYRE_PAGE_SHIFT)) +
			(u64)(page % L2_ENTRIES << HMVA_SHIFT);
	entry = vm_entry(ctx, entry & GENMASK_ULL(51, HMVA_SHIFT), page % L2_ENTRIES);
	return entry & SPYRE_PTE_VALID ? entry & GENMASK_ULL(51, HMVA_SHIFT) : 0;
}

/* Each page of a binding, and nothing around it. */
static void vm_check(struct kunit *test, struct spyre_bind *bind, const struct spyre_bo *bo)
{
	u64 addr = spyre_bind_addr(bind), len;
	u32 i, hint = 0;

	for (i = 0; i < bind->pages; i++)
		KUNIT_ASSERT_EQ(test, bus_at(bo, (u64)i << PAGE_SHIFT, &hint, &len),
				vm_walk(bind->ctx, addr + ((u64)i << HMVA_SHIFT)));
	KUNIT_EXPECT_EQ(test, 0, vm_walk(bind->ctx, addr - SZ_4K));
	KUNIT_EXPECT_EQ(test, 0, vm_walk(bind->ctx, addr + ((u64)i << HMVA_SHIFT)));
}

static void vm_small_pages(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_ctx *ctx = spyre_kunit_ctx(test, sdev);
	struct spyre_bo *bo = vm_host(test, sdev, 1000, 7, SZ_1G);
	struct spyre_bind *bind;

	mutex_lock(&ctx->lock);
	bind = spyre_bind_host(ctx, bo, 0, bo->base.size, SPYRE_PTE_WRITE, false);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, bind);
	KUNIT_EXPECT_EQ(test, 1000, bind->pages);
	KUNIT_EXPECT_NE(test, 0, spyre_bind_addr(bind));
	vm_check(test, bind, bo);
	/* First-level table and two of the second level. */
	KUNIT_EXPECT_EQ(test, (SPYRE_TABLE_SIZE + 2 * SPYRE_HOST_L2_SIZE) / SPYRE_TABLE_UNIT,
			sdev->tables.used);
	KUNIT_EXPECT_EQ(test, 2, kref_read(&bo->base.refcount));
	/* Nobody confirms: gone for the user, and kept until the card was stopped. */
	KUNIT_EXPECT_EQ(test, -EIO, spyre_unbind(bind));
	KUNIT_EXPECT_EQ(test, 0, vm_walk(ctx, spyre_bind_addr(bind)));
	KUNIT_EXPECT_NULL(test, xa_load(&ctx->vm.binds[1], spyre_bind_first(bind)));
	KUNIT_EXPECT_EQ(test, 2, kref_read(&bo->base.refcount));
	spyre_vm_free_limbo(ctx);
	KUNIT_EXPECT_EQ(test, 1, kref_read(&bo->base.refcount));
	KUNIT_EXPECT_EQ(test, SPYRE_TABLE_SIZE / SPYRE_TABLE_UNIT, sdev->tables.used);
	mutex_unlock(&ctx->lock);
	spyre_bo_put(bo);
}

/* Host memory that is contiguous and aligned as addresses are takes one entry for 2 MiB. */
static void vm_large_pages(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_ctx *ctx = spyre_kunit_ctx(test, sdev);
	struct spyre_bo *bo = vm_host(test, sdev, 5 * VM_MB, 5 * VM_MB, SZ_1G + 3 * SZ_4K);
	struct spyre_bind *bind;

	bo->color = 3;
	mutex_lock(&ctx->lock);
	bind = spyre_bind_host(ctx, bo, 0, bo->base.size, 0, false);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, bind);
	KUNIT_EXPECT_EQ(test, 3, spyre_bind_first(bind) % L2_ENTRIES);
	vm_check(test, bind, bo);
	/* What is before the first whole 2 MiB, and behind the last. */
	KUNIT_EXPECT_EQ(test, (SPYRE_TABLE_SIZE + 2 * SPYRE_HOST_L2_SIZE) / SPYRE_TABLE_UNIT,
			sdev->tables.used);
	spyre_unbind(bind);
	KUNIT_EXPECT_EQ(test, 0, vm_walk(ctx, spyre_bind_addr(bind) + SZ_2M));
	mutex_unlock(&ctx->lock);
	spyre_bo_put(bo);
}

/* A table that two bindings share goes with the second. */
static void vm_shared_table(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_ctx *ctx = spyre_kunit_ctx(test, sdev);
	struct spyre_bo *bo = vm_host(test, sdev, 4, 4, SZ_1G);
	u32 both = (SPYRE_TABLE_SIZE + SPYRE_HOST_L2_SIZE) / SPYRE_TABLE_UNIT;
	struct spyre_bind *a, *b;

	mutex_lock(&ctx->lock);
	a = spyre_bind_host(ctx, bo, 0, bo->base.size, 0, false);
	b = spyre_bind_host(ctx, bo, SZ_4K, SZ_8K, 0, false);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, a);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, b);
	KUNIT_EXPECT_EQ(test, both, sdev->tables.used);
	KUNIT_EXPECT_EQ(test, SZ_1G + SZ_4K, vm_walk(ctx, spyre_bind_addr(b)));
	spyre_unbind(a);
	spyre_vm_free_limbo(ctx);
	KUNIT_EXPECT_EQ(test, both, sdev->tables.used);
	KUNIT_EXPECT_EQ(test, SZ_1G + SZ_4K, vm_walk(ctx, spyre_bind_addr(b)));
	spyre_unbind(b);
	spyre_vm_free_limbo(ctx);
	KUNIT_EXPECT_EQ(test, both - 1, sdev->tables.used);
	mutex_unlock(&ctx->lock);
	spyre_bo_put(bo);
}

/* Memory that is taken back leaves the tables; the places stay until the user ends them. */
static void vm_withdrawn(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_ctx *ctx = spyre_kunit_ctx(test, sdev);
	struct spyre_bo *bo = vm_host(test, sdev, 3 * VM_MB, 3 * VM_MB, SZ_1G);
	struct spyre_bo *other = vm_host(test, sdev, 4, 4, SZ_2G);
	struct spyre_bind *a, *b, *c;

	mutex_lock(&ctx->lock);
	a = spyre_bind_host(ctx, bo, 0, bo->base.size, SPYRE_PTE_WRITE, false);
	b = spyre_bind_host(ctx, bo, SZ_4K, SZ_8K, 0, false);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, a);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, b);
	/* Its own stands for the card that takes it back. */
	bo->peer = bo;
	other->peer = other;
	spyre_bo_withdraw(bo);
	/* It sleeps: nothing has to be confirmed. */
	sdev->suspended = true;
	KUNIT_EXPECT_EQ(test, 0, spyre_vm_withdraw(ctx, sdev));
	KUNIT_EXPECT_EQ(test, 0, vm_walk(ctx, spyre_bind_addr(a)));
	KUNIT_EXPECT_EQ(test, 0, vm_walk(ctx, spyre_bind_addr(a) + SZ_2M));
	KUNIT_EXPECT_EQ(test, 0, vm_walk(ctx, spyre_bind_addr(b)));
	KUNIT_EXPECT_TRUE(test, list_empty(&bo->bound));
	KUNIT_EXPECT_EQ(test, SPYRE_TABLE_SIZE / SPYRE_TABLE_UNIT, sdev->tables.used);
	KUNIT_EXPECT_EQ(test, -ENODEV, PTR_ERR(spyre_bind_host(ctx, bo, 0, SZ_4K, 0, false)));
	KUNIT_EXPECT_PTR_EQ(test, a, xa_load(&ctx->vm.binds[1], spyre_bind_first(a)));
	c = spyre_bind_host(ctx, other, 0, SZ_4K, 0, false);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, c);
	KUNIT_EXPECT_NE(test, spyre_bind_addr(c), spyre_bind_addr(b));
	KUNIT_EXPECT_EQ(test, 0, spyre_unbind(a));
	KUNIT_EXPECT_EQ(test, 0, spyre_unbind(b));
	KUNIT_EXPECT_EQ(test, 1, kref_read(&bo->base.refcount));
	/* One that may run and cannot be asked. */
	spyre_bo_withdraw(other);
	sdev->suspended = false;
	sdev->mmio_ok = true;
	KUNIT_EXPECT_EQ(test, -EIO, spyre_vm_withdraw(ctx, sdev));
	KUNIT_EXPECT_EQ(test, 0, spyre_vm_withdraw(ctx, sdev));
	sdev->mmio_ok = false;
	spyre_unbind(c);
	spyre_vm_free_limbo(ctx);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&other->unconfirmed));
	mutex_unlock(&ctx->lock);
	spyre_bo_put(bo);
	spyre_bo_put(other);
}

/* No binding crosses a segment, and none is larger than one. */
static void vm_segments(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_ctx *ctx = spyre_kunit_ctx(test, sdev);
	struct spyre_bo *bo = vm_host(test, sdev, 1, 1, SZ_1G);

	mutex_lock(&ctx->lock);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			PTR_ERR(spyre_bind_host(ctx, bo, 0, SPYRE_SEGMENT_SIZE + SZ_4K, 0, false)));
	/* More table area than there is: nothing of it stays. */
	sdev->tables.used = sdev->tables.units;
	bitmap_set(sdev->tables.map, 0, sdev->tables.units);
	KUNIT_EXPECT_EQ(test, -ENOSPC, PTR_ERR(spyre_bind_host(ctx, bo, 0, SZ_4K, 0, false)));
	KUNIT_EXPECT_EQ(test, 1, kref_read(&bo->base.refcount));
	KUNIT_EXPECT_TRUE(test, drm_mm_clean(&ctx->vm.hmva));
	sdev->tables.used = 0;
	bitmap_zero(sdev->tables.map, sdev->tables.units);
	mutex_unlock(&ctx->lock);
	spyre_bo_put(bo);
}

static void vm_device(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_ctx *ctx = spyre_kunit_ctx(test, sdev);
	struct spyre_bo *bo = spyre_bo_new(sdev, 2 * SPYRE_PAGE_SIZE, SPYRE_KIND_DEVICE);
	u64 end = 4 * SPYRE_SEGMENT_SIZE - 2 * SPYRE_PAGE_SIZE;
	struct spyre_bind *bind;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, bo);
	bo->dev_pages = kvcalloc(2, sizeof(*bo->dev_pages), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bo->dev_pages);
	bo->dev_pages[0] = 9;
	bo->dev_pages[1] = 4;
	mutex_lock(&ctx->lock);
	bind = bind_device(ctx, bo, 0, bo->base.size, true, 0, true, end);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, bind);
	KUNIT_EXPECT_EQ(test, end, spyre_bind_addr(bind));
	KUNIT_EXPECT_EQ(test, 4 * SPYRE_PAGE_SIZE | SPYRE_PTE_VALID | SPYRE_PTE_WRITE,
			vm_entry(ctx, ctx->vm.table[3], DEV_SEG_PAGES - 1));
	KUNIT_EXPECT_EQ(test, 9 * SPYRE_PAGE_SIZE | SPYRE_PTE_VALID | SPYRE_PTE_WRITE,
			vm_entry(ctx, ctx->vm.table[3], DEV_SEG_PAGES - 2));
	/* Occupied; over the end of a segment; of all; crooked; of an earlier life. */
	KUNIT_EXPECT_EQ(test, -EBUSY, PTR_ERR(bind_device(ctx, bo, 0, SPYRE_PAGE_SIZE, true, 0,
							  true, end + SPYRE_PAGE_SIZE)));
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR(bind_device(ctx, bo, 0, bo->base.size, true, 0, true,
							   2 * SPYRE_SEGMENT_SIZE -
							   SPYRE_PAGE_SIZE)));
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR(bind_device(ctx, bo, 0, bo->base.size, true, 0, true,
							   SPYRE_DMVA_SIZE)));
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR(bind_device(ctx, bo, 0, bo->base.size, true, 0, true,
							   SZ_4K)));
	bo->gen--;
	KUNIT_EXPECT_EQ(test, -ENODEV, PTR_ERR(bind_device(ctx, bo, 0, bo->base.size, true, 1,
							   false, 0)));
	bo->gen++;
	spyre_unbind(bind);
	KUNIT_EXPECT_EQ(test, 0, vm_entry(ctx, ctx->vm.table[3], DEV_SEG_PAGES - 1));
	/* In limbo the address is not free. */
	KUNIT_EXPECT_EQ(test, -EBUSY, PTR_ERR(bind_device(ctx, bo, 0, SPYRE_PAGE_SIZE, true, 0,
							  true, end)));
	spyre_vm_free_limbo(ctx);
	bind = bind_device(ctx, bo, 0, SPYRE_PAGE_SIZE, false, 0, true, end);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, bind);
	KUNIT_EXPECT_EQ(test, 9 * SPYRE_PAGE_SIZE | SPYRE_PTE_VALID,
			vm_entry(ctx, ctx->vm.table[3], DEV_SEG_PAGES - 2));
	mutex_unlock(&ctx->lock);
	/* The binding goes with the context, and the buffer with it. */
	spyre_bo_put(bo);
}

static struct kunit_case vm_cases[] = {
	KUNIT_CASE(vm_small_pages),
	KUNIT_CASE(vm_large_pages),
	KUNIT_CASE(vm_shared_table),
	KUNIT_CASE(vm_withdrawn),
	KUNIT_CASE(vm_segments),
	KUNIT_CASE(vm_device),
	{}
};

struct kunit_suite spyre_vm_suite = {
	.name = "spyre_vm",
	.test_cases = vm_cases,
};
EXPORT_SYMBOL_IF_KUNIT(spyre_vm_suite);
