#!/bin/sh
# An image on a disk that is full: what was written is either in the image, or its unmounting fails and says so. Called
# by suites.sh: fullhost.sh FRIT DIRECTORY before|after. before: the disk fills up before the image is mounted, after:
# behind that. Needs root, loop devices and mkfs.ext4.
set -u
frit=$1 root=$(mktemp -d "$2/fullhost-XXXXXX") || exit 1
cd "$root" || exit 1
end() {
  umount -l mnt 2>/dev/null
  umount -l host 2>/dev/null
  cd / && rm -rf "$root"
}
trap end EXIT
fail() { echo "$*"; exit 1; }
fill() { dd if=/dev/zero of=host/filler bs=4k 2>/dev/null; }

truncate -s 48M disk && mkfs.ext4 -q -F -m 0 disk && mkdir host mnt && mount -o loop disk host || fail 'no small disk'
"$frit" mkfs host/img --size 16M >/dev/null || fail 'no image'
[ "$3" = after ] || fill
"$frit" mount host/img mnt --sync-every 0 >/dev/null 2>&1 || fail 'not mounted'
[ "$3" = before ] || fill
dd if=/dev/urandom of=mnt/f bs=1M count=4 2>/dev/null || fail 'not written'
sum=$(md5sum <mnt/f)

if [ "$3" = after ]; then
  "$frit" unmount mnt >/dev/null || fail 'not unmounted, although space was reserved'
  "$frit" fsck host/img >/dev/null || fail 'the image is not as it was unmounted'
else
  "$frit" unmount mnt >/dev/null 2>said && fail 'unmounted without a word, and the image is not up to date'
  grep -q 'stays mounted' said && [ "$(md5sum <mnt/f)" = "$sum" ] || fail "not mounted any more: $(cat said)"
  "$frit" unmount mnt --force >/dev/null 2>said && fail 'unmounted by force without a word'
  "$frit" fsck host/img >checked 2>&1 && fail 'fsck finds an image in order that is not up to date'
fi
rm host/filler
"$frit" mount host/img mnt >/dev/null || fail 'not mounted again'
[ "$(md5sum <mnt/f)" = "$sum" ] || fail 'other contents'
"$frit" unmount mnt >/dev/null || fail 'not unmounted although there is room'
"$frit" fsck host/img >/dev/null || fail 'the image is damaged'
