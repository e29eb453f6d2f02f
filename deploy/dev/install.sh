#!/bin/sh
# Installs the packages of package-lock.json into node_modules, Node 24 among them, unless that is done already.
# Runs before anything of ours can: it needs a POSIX shell, Node 20 or newer and npm.
set -eu
cd "$(dirname "$0")/../.."

fail() {
  echo "$1" >&2
  exit 1
}

command -v node >/dev/null || fail 'Node.js is not installed: install Node 20 or newer with npm (Debian: apt-get install nodejs npm).'
major=$(node -p 'process.versions.node.split(".")[0]')
[ "$major" -ge 20 ] || fail "Node $(node --version) is too old: install Node 20 or newer with npm."
command -v npm >/dev/null || fail 'npm is not installed: install it (Debian: apt-get install npm).'

# One install at a time in a checkout, where the system can say so.
mkdir -p .local
if command -v flock >/dev/null; then
  exec 9>.local/install.lock
  flock 9
fi

# npm ci removes node_modules first, so the stamp goes with everything else when an install is cut off.
wanted=$(cksum <package-lock.json)
stamp=node_modules/.installed
[ "$(cat $stamp 2>/dev/null || true)" != "$wanted" ] || exit 0

echo 'Installing npm packages (half a minute; a moment when npm has them cached) …'
(
  seconds=0
  while sleep 10; do
    seconds=$((seconds + 10))
    echo "Installing npm packages … $seconds s"
  done
) 9>&- &
progress=$!
trap 'kill $progress 2>/dev/null || true' EXIT
# A shell that dies of a signal runs no EXIT trap, and its background jobs ignore Ctrl-C.
trap 'exit 130' INT TERM
# No script of a package is needed; Node 24 comes as a plain file.
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error || fail 'npm could not install the packages (see above): check the network, the registry npm is set up for, and free space (600 MB).'
node_modules/.bin/node --version >/dev/null 2>&1 || fail 'The Node of this checkout (node_modules/.bin/node) does not run here: Linux on x64 with glibc is needed.'
echo "$wanted" >$stamp
