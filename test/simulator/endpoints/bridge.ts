import type { Call } from '../core.ts';
import { parseNic } from '../vmConfig.ts';

/** `SDN.Use` on the bridge, or on the VLAN of it (pve/README 27). */
export function checkBridge(call: Call, key: string, value: string): void {
  const nic = parseNic(key, value);
  const bridge = nic.options.get('bridge');
  if (bridge === undefined) return;
  const tag = nic.options.get('tag');
  const path = `/sdn/zones/localnetwork/${bridge}${tag === undefined ? '' : `/${tag}`}`;
  call.core.access.require(call.who, path, 'SDN.Use');
}
