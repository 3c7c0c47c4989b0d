# SPDX-License-Identifier: MIT
#
# Second stage of the machine that spyre-vm boots, on the overlay root with
# busybox: loads the driver, runs the command, reports. Ports to the host:
#   ctl           words to spyre-vm: "booted", "driver OK|FAILED|none", "status N"
#   log           the kernel log at the end
#   in, out, err  of the command
# The folder of this run, written by spyre-vm and visible here at the same
# path, is named on the kernel's command line, blanks and the like as \0NNN.

bb=/run/spyre-vm/busybox

for c in mount mkdir ln cat sleep kill dmesg mkfifo insmod stty setsid ip sync sed grep hostname mknod; do
	eval "$c() { \$bb $c \"\$@\"; }"
done

dir=
for w in $(cat /proc/cmdline); do
	case $w in spyre_vm=*) dir=$(printf %b "${w#*=}") ;; esac
done

mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs shm /dev/shm
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
[ -e /dev/stdin ] || ln -s fd/0 /dev/stdin
[ -e /dev/stdout ] || ln -s fd/1 /dev/stdout
[ -e /dev/stderr ] || ln -s fd/2 /dev/stderr
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
hostname spyre-vm

# The ports come one by one, some time after their driver; the last one is err.
port() {
	local p
	for p in /sys/class/virtio-ports/*; do
		if [ "$(cat "$p/name" 2>/dev/null)" = "spyre.$1" ]; then
			echo "/dev/${p##*/}"
			return 0
		fi
	done
	return 1
}
n=0
until port err >/dev/null || [ $n -ge 500 ]; do
	sleep 0.01
	n=$((n + 1))
done
exec 9>"$(port ctl)"
echo booted  >&9

# Sets modules, release, driver, firmware, params, console, rows, cols, kmemleak.
. "$dir/conf"
# Not on the kernel's command line, which splits at blanks. No newline: it would become part of the path.
printf %s "$firmware" >/sys/module/firmware_class/parameters/path

if [ ! -d "/lib/modules/$release" ]; then
	mkdir -p /lib/modules
	ln -s "$modules" "/lib/modules/$release"
fi
if [ -n "$console" ]; then
	exec 6<>/dev/hvc0
	stty -F /dev/hvc0 rows "$rows" cols "$cols"
fi
if [ -n "$driver" ]; then
	if insmod "$driver" $params; then
		echo "driver OK" >&9
	else
		echo "driver FAILED" >&9
	fi
else
	echo "driver none" >&9
fi

cd /
if [ -n "$console" ]; then
	setsid -c "$bb" sh "$dir/run" <&6 >&6 2>&6 6>&- 9>&-
	rc=$?
else
	# A pipe between command and port: a port can be opened only once, and
	# programs open /dev/stdout and /dev/stderr again.
	mkfifo /run/spyre-vm/out /run/spyre-vm/err
	cat </run/spyre-vm/out >"$(port out)" &
	po=$!
	cat </run/spyre-vm/err >"$(port err)" &
	pe=$!
	exec 7>/run/spyre-vm/out 8>/run/spyre-vm/err
	setsid "$bb" sh "$dir/run" <"$(port in)" >&7 2>&8 7>&- 8>&- 9>&-
	rc=$?
	exec 7>&- 8>&-
	# What the command left running may hold the pipes; it gets a second.
	n=0
	while { kill -0 $po || kill -0 $pe; } 2>/dev/null && [ $n -lt 50 ]; do
		sleep 0.02
		n=$((n + 1))
	done
fi
[ -z "$kmemleak" ] || {
	echo scan >/sys/kernel/debug/kmemleak
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	sed 's/^/kmemleak: /' /sys/kernel/debug/kmemleak >/dev/kmsg
}
sync
dmesg -r >"$(port log)"
echo "status $rc" >&9
# spyre-vm ends the machine; without it (port gone) end by ourselves.
sleep 30
"$bb" poweroff -f
