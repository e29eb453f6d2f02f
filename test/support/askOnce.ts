/**
 * A process of its own that asks one Proxmox VE API once: `node askOnce.ts <url> <token file>`. No CA file is named. Prints
 * `trusted`, or class and reason of what went wrong.
 */
import { createProxmoxApi } from '../../activities/proxmox/client.ts';
import { createProxmoxHttp } from '../../activities/proxmox/http.ts';
import { anAttempt, asWords, failureOf } from './proxmoxClient.ts';

const [url = '', tokenFile = ''] = process.argv.slice(2);
const http = createProxmoxHttp({
  provider: 'lab',
  url,
  tokenFile,
  caFile: null,
  insecureSkipTLSVerify: false,
  requestBoundMs: 10_000,
});
const asked = createProxmoxApi('lab', http, anAttempt()).start('pve1', 110);
const outcome = await asked.then(
  () => 'trusted',
  async () => asWords(await failureOf(asked)),
);
await http.close();
process.stdout.write(outcome);
