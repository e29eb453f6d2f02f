/** What each failure of the captures must become. Written from the facts of pve/README and pve/cluster.md, by pattern. */
import type { FailureFacts } from '../../workflows/contract/errors.ts';

/** What a class of failures must be. `undefined` facts must be absent. */
export interface Expectation {
  status: number | 'task';
  /** In the reason phrase, the errors of the body, or the exit status. */
  says: RegExp;
  /** Only for failures of these seam methods. */
  call?: string;
  becomes: `${string} ${FailureFacts['reason']} ${FailureFacts['scope']}`;
  goBack?: true;
  /** A write with this answer may have been carried out (design §5). Tasks: not looked at. */
  unknown?: true;
}

/** First match counts; every failure in the captures must match one, and every row a failure. */
export const expectations: Expectation[] = [
  {
    status: 401,
    says: /^(No ticket|Authentication failed!)/,
    becomes: 'Permanent Unauthorized provider',
  },
  // A config write applies keys one by one, so that a refusal may come late (api-facts 5.12).
  {
    status: 403,
    call: 'setVmConfig',
    says: /^Permission check failed/,
    becomes: 'Permanent Forbidden provider',
    unknown: true,
  },
  { status: 403, says: /^Permission check failed/, becomes: 'Permanent Forbidden provider' },
  { status: 400, says: /upid: no such task/, becomes: 'Transient TaskUnknown proxy', goBack: true },
  {
    status: 400,
    says: /storage: storage 'proxy-seeds' does not support vm images/,
    becomes: 'Permanent StorageUnavailable provider',
  },
  {
    status: 400,
    says: /vmid: VM \d+ already exists/,
    becomes: 'Transient LostRace proxy',
    goBack: true,
  },
  {
    status: 400,
    call: 'setVmConfig',
    says: /^(Parameter verification failed\.|Bad Request)/,
    becomes: 'Permanent BadRequest proxy',
    unknown: true,
  },
  {
    status: 400,
    says: /^(Parameter verification failed\.|Bad Request)/,
    becomes: 'Permanent BadRequest proxy',
  },
  {
    status: 501,
    says: /not implemented|Unexpected content|chunked|too large|no formatter/,
    becomes: 'Transient ApiError proxy',
  },
  {
    status: 506,
    says: /not implemented|not supported/,
    becomes: 'Transient ApiError proxy',
    unknown: true,
  },
  {
    status: 595,
    says: /^(Connection refused|Connection timed out|No route to host)$/,
    becomes: 'Transient Unreachable provider',
  },
  {
    status: 596,
    says: /^(Connection timed out|Broken pipe)$/,
    becomes: 'Transient Unreachable provider',
    unknown: true,
  },

  {
    status: 500,
    call: 'clone',
    says: /unable to find configuration file for VM \d+/,
    becomes: 'Transient TemplateUnusable provider',
    goBack: true,
  },
  {
    status: 500,
    says: /Configuration file 'nodes.*\.conf' does not exist/,
    becomes: 'NotFound VmVanished proxy',
  },
  { status: 500, says: /VM is locked/, becomes: 'Transient WaitingForLock proxy' },
  {
    status: 500,
    says: /can't lock file '\/var\/lock\/qemu-server/,
    becomes: 'Transient WaitingForLock proxy',
  },
  {
    status: 500,
    says: /config file already exists/,
    becomes: 'Transient LostRace proxy',
    goBack: true,
  },
  { status: 500, says: /cluster not ready - no quorum\?/, becomes: 'Transient NoQuorum provider' },
  {
    status: 500,
    call: 'setVmConfig',
    says: /unable to open file '\/etc\/pve.* - Permission denied/,
    becomes: 'Transient NoQuorum provider',
    unknown: true,
  },
  {
    status: 500,
    says: /RPCEnvironment init request failed/,
    becomes: 'Transient Unreachable provider',
  },
  { status: 500, says: /hostname lookup 'pve9' failed/, becomes: 'Transient Unreachable provider' },
  { status: 500, says: /no such cluster node 'pve9'/, becomes: 'Transient Unreachable provider' },
  {
    status: 500,
    says: /can't activate storage 'proxy-seeds' on node 'pve2'/,
    becomes: 'Transient Unreachable provider',
    unknown: true,
  },
  {
    status: 500,
    call: 'setVmConfig',
    says: /storage '.*' (does not exist|is disabled|is not available on node)/,
    becomes: 'Permanent StorageUnavailable provider',
    unknown: true,
  },
  {
    status: 500,
    says: /storage '.*' (does not exist|is disabled|is not available on node)/,
    becomes: 'Permanent StorageUnavailable provider',
  },
  {
    status: 500,
    says: /storage 'no-iso' does not support 'iso' content/,
    becomes: 'Permanent StorageUnavailable provider',
  },
  {
    status: 500,
    says: /unable to activate storage 'broken'/,
    becomes: 'Transient StorageUnavailable provider',
  },
  {
    status: 500,
    call: 'setVmConfig',
    says: /volume 'proxy-seeds:iso\/nope\.iso' does not exist/,
    becomes: 'Transient UploadNotConfirmed proxy',
    goBack: true,
    unknown: true,
  },
  {
    status: 500,
    says: /can't clone VM to node 'pve2' \(VM uses local storage\)/,
    becomes: 'Permanent TemplateUnusable provider',
  },
  {
    status: 500,
    says: /can't clone to non-shared storage 'local'/,
    becomes: 'Permanent TemplateUnusable provider',
  },
  {
    status: 500,
    says: /checksum mismatch \(file change by other user\?\)/,
    becomes: 'Transient ConfigChanged proxy',
  },
  { status: 500, says: /protection mode enabled/, becomes: 'Transient DeletionBlocked proxy' },
  {
    status: 500,
    says: /VM \d+ is running - destroy failed/,
    becomes: 'Transient ApiError proxy',
    goBack: true,
  },
  {
    status: 500,
    says: /No QEMU guest agent configured|QEMU guest agent is not running/,
    becomes: 'Transient AgentSilent proxy',
  },
  { status: 500, says: /VM \d+ is not running/, becomes: 'Transient VmStopped proxy' },
  // «Everything else» of the specification. None of these can be met by what the operator sends.
  {
    status: 500,
    says: /character offset|VM is paused|only root can|not allowed for linked clones|used in HA resources|unable to parse directory volume name|upload failed at|wrong field name|running VM without --online|proxy loop/,
    becomes: 'Transient ApiError proxy',
    unknown: true,
  },

  {
    status: 'task',
    says: /^Configuration file '.*' does not exist$/,
    becomes: 'NotFound VmVanished proxy',
  },
  {
    status: 'task',
    says: /^unable to find configuration file for VM/,
    becomes: 'NotFound VmVanished proxy',
  },
  { status: 'task', says: /^VM is locked/, becomes: 'Transient WaitingForLock proxy' },
  {
    status: 'task',
    says: /^can't lock file .* - got timeout$/,
    becomes: 'Transient WaitingForLock proxy',
  },
  {
    status: 'task',
    says: /File exists$|config file already exists$/,
    becomes: 'Transient LostRace proxy',
    goBack: true,
  },
  {
    status: 'task',
    says: /^unable to open file '\/etc\/pve.* - Permission denied$/,
    becomes: 'Transient NoQuorum provider',
  },
  {
    status: 'task',
    says: /^volume 'proxy-seeds:iso\/.*' does not exist$/,
    becomes: 'Transient UploadNotConfirmed proxy',
    goBack: true,
  },
  {
    status: 'task',
    says: /No space left on device$/,
    becomes: 'Transient StorageUnavailable provider',
  },
  {
    status: 'task',
    says: /^unexpected status$|interrupted by signal$|already running$/,
    becomes: 'Transient TaskFailed proxy',
    goBack: true,
  },
  {
    status: 'task',
    says: /^(command 'ha-manager |failed to stat '\/var\/tmp\/pveupload-|base volume .* still in use|migration aborted|start failed: QEMU exited|VM quit\/powerdown failed|disk 'scsi\d' does not exist|shrinking disks|you can't resize a cdrom)/,
    becomes: 'Transient TaskFailed proxy',
  },
];
