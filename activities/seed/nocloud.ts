/** The NoCloud seed: an ISO labelled `cidata` that cloud-init reads at first boot (spec, The seed). */
import { createHash } from 'node:crypto';
import { guestAgentScript } from './guestAgent.ts';
import { buildIso } from './iso9660.ts';

export interface SeedInput {
  /** Becomes instance-id and host name. */
  vmName: string;
  /** The Proxy's cloud-init, placed byte for byte and never parsed. */
  userData: Uint8Array;
  /** The provider's own vendor-data, if any. */
  vendorData: string | null;
  installGuestAgent: boolean;
}

/** A change of instance-id makes cloud-init run everything again; the VM's name is as stable as the VM. */
function metaData(vmName: string): string {
  return `instance-id: ${vmName}\nlocal-hostname: ${vmName}\n`;
}

/** Content of one part as base64 in lines of 76 characters (RFC 2045 6.8). */
function base64Lines(text: string): string {
  return Buffer.from(text, 'utf8')
    .toString('base64')
    .replaceAll(/.{1,76}/g, '$&\n');
}

function part(type: string, filename: string, text: string): string {
  return [
    `Content-Type: ${type}; charset="utf-8"`,
    'Content-Transfer-Encoding: base64',
    `Content-Disposition: attachment; filename="${filename}"`,
    '',
    base64Lines(text),
  ].join('\n');
}

/**
 * The provider's vendor-data as a part. `text/plain` makes cloud-init look at its first line, as it does when it
 * gets the file alone. What is a MIME message already becomes a nested one: cloud-init would take it for text else.
 */
function vendorPart(vendorData: string): string {
  return /^(?:mime-version|content-type):/i.test(vendorData)
    ? vendorData.replace(/\n*$/, '\n')
    : part('text/plain', 'vendor-data', vendorData);
}

/** Both texts in one MIME message whose boundary comes from their content, so that it is the same every time. */
function multipart(script: string, vendorData: string): string {
  const digest = createHash('sha256').update(script).update('\0').update(vendorData).digest('hex');
  const boundary = `==${digest.slice(0, 32)}==`;
  return [
    `Content-Type: multipart/mixed; boundary="${boundary}"`,
    'MIME-Version: 1.0',
    '',
    `--${boundary}`,
    part('text/x-shellscript', 'guest-agent.sh', script),
    `--${boundary}`,
    vendorPart(vendorData),
    `--${boundary}--`,
    '',
  ].join('\n');
}

/** The seed's vendor-data: guest-agent script, the provider's own, both, or `null` for neither. */
export function vendorDataFor(
  vendorData: string | null,
  installGuestAgent: boolean,
): string | null {
  const own = vendorData === null || vendorData.trim() === '' ? null : vendorData;
  if (!installGuestAgent) return own;
  return own === null ? guestAgentScript : multipart(guestAgentScript, own);
}

/** The seed image; same input, same bytes, so that an upload may be repeated at any time. */
export function buildSeed(input: SeedInput): Uint8Array {
  const vendorData = vendorDataFor(input.vendorData, input.installGuestAgent);
  const files = [
    { name: 'meta-data', bytes: Buffer.from(metaData(input.vmName), 'utf8') },
    { name: 'user-data', bytes: input.userData },
  ];
  if (vendorData !== null) {
    files.push({ name: 'vendor-data', bytes: Buffer.from(vendorData, 'utf8') });
  }
  return buildIso('cidata', files);
}
