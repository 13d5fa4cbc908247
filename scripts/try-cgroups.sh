#!/bin/sh
# Tries the daemonless sandbox on a machine whose kernel has another cgroup layout than this one.
#
#   scripts/try-cgroups.sh [v2|v1|hybrid] [command ...]
#
# Boots Debian's kernel under QEMU with this machine's own files: its root is seen read-only with a throw-away layer on
# top, so nothing is installed inside and nothing of this machine changes. Without a command it runs `seatrial doctor`,
# one oracle trial and the part of the contract suite that is about limits, and ends with their worst exit status.
#
# For whoever changes sandboxes/host/cgroups.py; not part of `make test`: without KVM it takes about 20 minutes.
# Needs root, `make setup` for tests, and: apt-get install qemu-system-x86 busybox-static kmod cpio e2fsprogs
#
#   SEATRIAL_VM_DIR    keeps kernel, images and disk (default /var/tmp/seatrial-vm); remove it to start anew
#   SEATRIAL_VM_ACCEL  tcg (default, works everywhere) or kvm
set -eu
cd "$(dirname "$0")/.."
project=$PWD
layout=${1:-v2}
[ $# = 0 ] || shift
work=${SEATRIAL_VM_DIR:-/var/tmp/seatrial-vm}
cache=$work/cache

case $layout in
v2) boot=cgroup_no_v1=all ;;
v1 | hybrid) boot= ;;
*) echo "try-cgroups.sh: $layout is none of v2, v1, hybrid" >&2; exit 2 ;;
esac
[ "$(id -u)" = 0 ] || { echo "try-cgroups.sh: run me as root" >&2; exit 1; }
for tool in qemu-system-x86_64 busybox depmod cpio mke2fs; do
    command -v $tool >/dev/null || {
        echo "try-cgroups.sh: $tool is missing; apt-get install qemu-system-x86 busybox-static kmod cpio e2fsprogs" >&2
        exit 1
    }
done
mkdir -p "$work" "$cache"

default_command() {
    suite=tests/contracts/sandbox
    cat <<COMMAND
status=0
.venv/bin/seatrial doctor || status=\$?
.venv/bin/seatrial run samples/answer-file -a oracle -e oci || status=\$?
.venv/bin/pytest -v -p no:cacheprovider -k 'oci and not docker' \\
    $suite/test_limits.py $suite/test_facts.py $suite/test_cleanup.py || status=\$?
exit \$status
COMMAND
}

if [ $# -gt 0 ]; then printf '%s ' "$@" >"$work/command"; else default_command >"$work/command"; fi
export HOME="$work/home" SEATRIAL_HOME="$work/home/state" SEATRIAL_CACHE="$cache" SEATRIAL_TEST_CACHE="$cache"
mkdir -p "$HOME"
if [ ! -e "$work/disk" ]; then
    # Making them inside would take an hour.
    echo "== Images, made outside"
    .venv/bin/seatrial run samples/answer-file -a oracle -e oci
    .venv/bin/pytest -q -p no:cacheprovider tests/contracts/sandbox/test_facts.py -k 'oci and not docker'
    rm -rf "$SEATRIAL_HOME"
    truncate -s 6G "$work/disk.new"
    mke2fs -q -t ext4 -d "$cache" "$work/disk.new"
    mv "$work/disk.new" "$work/disk"
fi

if [ ! -d "$work/kernel/boot" ]; then
    package=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-[0-9]/ { print $2; exit }')
    (cd "$work" && apt-get -q -o APT::Sandbox::User=root download "$package")
    dpkg-deb --extract "$work/$package"_*.deb "$work/kernel"
    rm "$work/$package"_*.deb
fi
release=$(ls "$work/kernel/lib/modules")
[ -e "$work/kernel/lib/modules/$release/modules.dep" ] || depmod -b "$work/kernel" "$release"

# What the machine's first process runs once.
cat >"$work/try" <<TRY
exec >/dev/console 2>&1
cd $project
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp/home TERM=dumb
export SEATRIAL_HOME=/tmp/home/state SEATRIAL_CACHE=$cache SEATRIAL_TEST_CACHE=$cache COLUMNS=120
mkdir -p /tmp/home
count() { grep -c " \$1 " /proc/mounts; }
echo "== Linux \$(uname -r), \$(count cgroup) hierarchies of version 1, \$(count cgroup2) of version 2"
sh $work/command
echo "try-cgroups exit \$?"
sync
busybox poweroff -f
TRY

# The first root: enough to mount the real one.
first=$work/first
rm -rf "$first"
for place in bin modules proc sys dev lower upper root; do mkdir -p "$first/$place"; done
cp "$(command -v busybox)" "$first/bin/busybox"
number=100
for module in virtio_pci 9pnet_virtio 9p virtio_blk virtio_net ext4 overlay; do
    modprobe -d "$work/kernel" -S "$release" --show-depends "$module" | awk '$1 == "insmod" { print $2 }'
done | awk '!seen[$0]++' | while read -r file; do
    case $file in *crc32c-intel*) continue ;; esac
    cp "$file" "$first/modules/$number-${file##*/}"
    number=$((number + 1))
done

cat >"$first/init" <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev
for module in /modules/*; do insmod "\$module"; done
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro machine /lower
mount -t tmpfs upper /upper && mkdir /upper/changes /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/changes,workdir=/upper/work root /root
mkdir -p /root/lib/modules/$release
mount --bind /lower$work/kernel/lib/modules/$release /root/lib/modules/$release
mount -t ext4 /dev/vda /root$cache
mount -t tmpfs run /root/run
mount -t tmpfs -o mode=1777 tmp /root/tmp
for place in proc sys dev; do mount --move /\$place /root/\$place; done
mkdir -p /root/dev/pts /root/dev/shm && mount -t devpts devpts /root/dev/pts && mount -t tmpfs shm /root/dev/shm
groups=/root/sys/fs/cgroup
case $layout in
v2) mount -t cgroup2 -o nsdelegate cgroup2 \$groups ;;
*)
    mount -t tmpfs -o mode=755 cgroup \$groups
    for kind in memory pids cpu,cpuacct devices freezer blkio; do
        mkdir \$groups/\$kind && mount -t cgroup -o \$kind cgroup \$groups/\$kind
    done
    [ $layout = v1 ] || { mkdir \$groups/unified && mount -t cgroup2 cgroup2 \$groups/unified; } ;;
esac
ip link set lo up
ip link set eth0 up && ip addr add 10.0.2.15/24 dev eth0 && ip route add default via 10.0.2.2
rm -f /root/etc/resolv.conf && echo nameserver 10.0.2.3 >/root/etc/resolv.conf
echo "::once:/bin/sh $work/try" >/root/etc/inittab
exec switch_root /root /bin/busybox init
INIT
chmod 755 "$first/init"
(cd "$first" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/first.gz"

# Each run starts from the same disk.
cp --sparse=always "$work/disk" "$work/disk.run"
trap 'rm -f "$work/disk.run"' EXIT
echo "== Booting $release with cgroup $layout"
qemu-system-x86_64 -accel "${SEATRIAL_VM_ACCEL:-tcg}" -cpu max -smp 2 -m 3072 -nographic -no-reboot \
    -kernel "$work/kernel/boot/vmlinuz-$release" -initrd "$work/first.gz" \
    -append "console=ttyS0 quiet panic=-1 $boot" \
    -virtfs local,path=/,mount_tag=machine,security_model=none,readonly=on,multidevs=remap \
    -drive "file=$work/disk.run,format=raw,if=virtio,cache=unsafe" \
    -nic user,model=virtio-net-pci </dev/null | tee "$work/log"
status=$(tr -d '\r' <"$work/log" | awk '/^try-cgroups exit/ { print $3 }')
[ "${status:-1}" = 0 ] || exit "${status:-1}"
