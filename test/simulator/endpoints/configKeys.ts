import { formats, type Property } from '../schema.ts';
import { parseNic } from '../vmConfig.ts';
import { ApiError } from '../errors.ts';

const OPTIONS = ['VM.Config.Options'] as const;
const HARDWARE = ['VM.Config.HWType'] as const;
const CPU = ['VM.Config.CPU'] as const;
const MEMORY = ['VM.Config.Memory'] as const;
const DISK = ['VM.Config.Disk'] as const;
const CLOUDINIT = ['VM.Config.Cloudinit', 'VM.Config.Network'] as const;

const plain: Property = { type: 'string', optional: true };
const bool: Property = { type: 'boolean', optional: true };

/** Property string of `memory`: a number, or `current=<number>` (05-config-bad-memory). */
function memoryFormat(value: string): string | null {
  const number = /^current=(.*)$/.exec(value)?.[1] ?? value;
  if (!/^[+-]?\d+$/.test(number)) {
    return `format error\nmemory.current: type check ('integer') failed - got '${number}'`;
  }
  return Number(number) < 16
    ? 'format error\nmemory.current: value must have a minimum value of 16'
    : null;
}

function nicFormat(key: string): (value: string) => string | null {
  return (value) => {
    try {
      parseNic(key, value);
      return null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const text = error.errors?.[key] ?? '';
      return text.replace(/^invalid format - /, '').replace(/\n$/, '');
    }
  };
}

/** `order=…`, or the letters of old (api-facts 5.12). */
function bootFormat(value: string): string | null {
  if (/^(order=.+|(legacy=)?[acdn]{1,4})$/.test(value)) return null;
  return 'format error\nboot.legacy: value does not match the regex pattern';
}

interface Option {
  property: Property;
  /** `null`: root@pam alone. */
  privilege: readonly string[] | null;
}

const FIXED: Readonly<Record<string, Option>> = {
  name: { property: { ...plain, format: formats.dnsName }, privilege: OPTIONS },
  description: { property: { ...plain, maxLength: 8192 }, privilege: OPTIONS },
  tags: { property: { ...plain, format: formats.tags, list: true }, privilege: OPTIONS },
  agent: { property: plain, privilege: OPTIONS },
  onboot: { property: bool, privilege: OPTIONS },
  protection: { property: bool, privilege: OPTIONS },
  ostype: { property: plain, privilege: OPTIONS },
  bios: { property: { ...plain, enum: ['seabios', 'ovmf'] }, privilege: OPTIONS },
  acpi: { property: bool, privilege: OPTIONS },
  autostart: { property: bool, privilege: OPTIONS },
  reboot: { property: bool, privilege: OPTIONS },
  freeze: { property: bool, privilege: OPTIONS },
  localtime: { property: bool, privilege: OPTIONS },
  startup: { property: plain, privilege: OPTIONS },
  startdate: { property: plain, privilege: OPTIONS },
  cores: { property: { type: 'integer', optional: true, minimum: 1 }, privilege: CPU },
  sockets: { property: { type: 'integer', optional: true, minimum: 1 }, privilege: CPU },
  vcpus: { property: { type: 'integer', optional: true, minimum: 1 }, privilege: CPU },
  cpu: { property: plain, privilege: CPU },
  cpulimit: { property: { type: 'number', optional: true, minimum: 0 }, privilege: CPU },
  cpuunits: { property: { type: 'integer', optional: true, minimum: 1 }, privilege: CPU },
  numa: { property: bool, privilege: CPU },
  memory: { property: { ...plain, format: memoryFormat }, privilege: MEMORY },
  balloon: { property: { type: 'integer', optional: true, minimum: 0 }, privilege: MEMORY },
  shares: { property: { type: 'integer', optional: true, minimum: 0 }, privilege: MEMORY },
  boot: { property: { ...plain, format: bootFormat }, privilege: DISK },
  bootdisk: { property: plain, privilege: DISK },
  vmstatestorage: { property: plain, privilege: DISK },
  vmstate: { property: plain, privilege: DISK },
  scsihw: { property: plain, privilege: HARDWARE },
  machine: { property: plain, privilege: HARDWARE },
  vga: { property: plain, privilege: HARDWARE },
  kvm: { property: bool, privilege: HARDWARE },
  tablet: { property: bool, privilege: HARDWARE },
  smbios1: { property: plain, privilege: HARDWARE },
  rng0: { property: plain, privilege: HARDWARE },
  watchdog: { property: plain, privilege: HARDWARE },
  hotplug: { property: plain, privilege: HARDWARE },
  keyboard: { property: plain, privilege: HARDWARE },
  audio0: { property: plain, privilege: HARDWARE },
  ciuser: { property: plain, privilege: CLOUDINIT },
  cipassword: { property: plain, privilege: CLOUDINIT },
  citype: { property: plain, privilege: CLOUDINIT },
  ciupgrade: { property: bool, privilege: CLOUDINIT },
  cicustom: { property: plain, privilege: CLOUDINIT },
  nameserver: { property: plain, privilege: CLOUDINIT },
  searchdomain: { property: plain, privilege: CLOUDINIT },
  sshkeys: { property: plain, privilege: CLOUDINIT },
  args: { property: plain, privilege: null },
  lock: { property: plain, privilege: null },
  hookscript: { property: plain, privilege: null },
  affinity: { property: plain, privilege: null },
  vmgenid: { property: plain, privilege: null },
  template: { property: bool, privilege: null },
};

function option(key: string): Option | undefined {
  const fixed = FIXED[key];
  if (fixed !== undefined) return fixed;
  if (
    /^(ide[0-3]|sata[0-5]|scsi([0-9]|[12]\d|30)|virtio([0-9]|1[0-5])|efidisk0|tpmstate0)$/.test(key)
  ) {
    return { property: plain, privilege: DISK };
  }
  if (/^net([0-9]|[12]\d|3[01])$/.test(key)) {
    return { property: { ...plain, format: nicFormat(key) }, privilege: ['VM.Config.Network'] };
  }
  if (/^serial[0-3]$/.test(key)) return { property: plain, privilege: HARDWARE };
  if (/^ipconfig\d+$/.test(key)) return { property: plain, privilege: CLOUDINIT };
  if (/^(usb|hostpci|parallel|virtiofs)\d+$/.test(key)) return { property: plain, privilege: null };
  return undefined;
}

export function configProperty(key: string): Property | undefined {
  return option(key)?.property;
}

/** Any one of these on /vms/{vmid}; `null` = root@pam alone. */
export function requiredPrivilege(key: string): readonly string[] | null {
  return option(key)?.privilege ?? null;
}
