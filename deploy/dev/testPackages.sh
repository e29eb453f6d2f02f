#!/bin/sh
# The tests read the seed image with programs that others wrote. On Debian, root gets missing ones installed; cloud-init is
# only unpacked into the cache, because installed it would set up this machine at its next boot.
set -eu
cd "$(dirname "$0")/../.."

cloud_init() {
  exec ./node_modules/.bin/node deploy/dev/fetchCloudInit.ts
}
missing=''
need() {
  command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
PATH="$PATH:/usr/sbin:/sbin"
need isoinfo genisoimage
need xorriso xorriso
need bsdtar libarchive-tools
need blkid util-linux
[ -n "$missing" ] || cloud_init

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "The tests need the Debian packages$missing: install them (apt-get install$missing)." >&2
  exit 1
fi
echo "Installing the Debian packages$missing, which the tests read the seed image with …"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of packages
apt-get install -y -qq --no-install-recommends $missing >/dev/null
cloud_init
