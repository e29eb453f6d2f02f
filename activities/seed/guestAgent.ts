/**
 * Vendor-data that installs and starts the guest agent, the only source of a VM's address. A shell script and not
 * a cloud-config, because cloud-init would drop its `packages:` wherever the user-data has some (spec, The seed).
 */

/** POSIX shell; may run again at any time. Its commands are found on PATH only, so that a test can stand in for them. */
export const guestAgentScript = `#!/bin/sh
# Makes sure that the QEMU guest agent is installed and runs.
# Running it again changes nothing once the agent runs.
set -u

say() { echo "guest agent: $*"; }
have() { command -v "$1" >/dev/null 2>&1; }
installed() { have qemu-ga; }
running() {
  if have pidof; then pidof qemu-ga; else pgrep -x qemu-ga; fi >/dev/null 2>&1
}

install_package() {
  if have apt-get; then
    DEBIAN_FRONTEND=noninteractive
    export DEBIAN_FRONTEND
    apt-get -q -o DPkg::Lock::Timeout=120 update
    apt-get -q -y -o DPkg::Lock::Timeout=120 install --no-install-recommends qemu-guest-agent
  elif have dnf; then
    dnf -q -y install qemu-guest-agent
  elif have microdnf; then
    microdnf -y install qemu-guest-agent
  elif have yum; then
    yum -q -y install qemu-guest-agent
  elif have zypper; then
    zypper --non-interactive --gpg-auto-import-keys install --no-recommends qemu-guest-agent
  elif have apk; then
    apk add --no-cache qemu-guest-agent
  else
    say "no package manager found (apt-get, dnf, microdnf, yum, zypper, apk)"
    return 1
  fi
}

start_service() {
  if have systemctl; then
    # Some distributions start the agent from a udev rule: replaying the port's arrival triggers it.
    if have udevadm; then udevadm trigger --action=add --subsystem-match=virtio-ports; fi
    systemctl daemon-reload
    systemctl enable qemu-guest-agent.service
    # Not waited for: without the agent's port the unit waits for its device for minutes.
    systemctl --no-block start qemu-guest-agent.service
  elif have rc-service; then
    rc-update add qemu-guest-agent default
    rc-service qemu-guest-agent start
  elif have service; then
    service qemu-guest-agent start
  fi >/dev/null 2>&1
  return 0
}

# The network or the mirror may be late at first boot.
attempt=1
while ! installed; do
  say "installing, attempt $attempt of 10"
  if install_package && installed; then break; fi
  if [ "$attempt" -ge 10 ]; then
    say "could not be installed; the operator will not learn this VM's address"
    exit 1
  fi
  attempt=$((attempt + 1))
  sleep 15
done

attempt=1
while ! running; do
  start_service
  if running; then break; fi
  if [ "$attempt" -ge 10 ]; then
    say "installed, but it does not start; is the agent option of the VM on?"
    exit 1
  fi
  attempt=$((attempt + 1))
  sleep 3
done
say "runs"
`;
