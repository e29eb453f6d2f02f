/** Certificates of the simulator, of the local Kubernetes and of tests, made without any program beside Node. */
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';

/** A server's identity and the CA it is from. */
export interface Certificates {
  /** PEM texts for `startSimulator({ tls })`. */
  key: string;
  cert: string;
  /** PEM of the CA, what a client trusts (`pve-root-ca.pem`). */
  ca: string;
}

/** The same, in files. */
export interface CertificateFiles extends Certificates {
  caFile: string;
}

/** A private key and its certificate, as PEM texts. */
export interface Identity {
  key: string;
  cert: string;
}

/** A CA in memory: its own key is written nowhere, so nothing more can be issued once it is dropped. */
export interface Ca {
  pem: string;
  /** Server certificate for names and addresses, with its key; not valid any more when `expired`. */
  issue(hosts: readonly string[], options?: { expired?: boolean }): Promise<Identity>;
  /** Client certificate as Kubernetes reads it: the user is its common name, each group an organization. */
  issueClient(user: string, groups: readonly string[]): Promise<Identity>;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const dayMs = 86_400_000;

/** Makes a fresh CA named `name`; `days` is the life of everything it issues. */
export async function newCa(name: string, days: number): Promise<Ca> {
  const keys = await newKeys();
  const now = Date.now();
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    notBefore: new Date(now - dayMs),
    notAfter: new Date(now + days * dayMs),
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign),
    ],
  });
  const sign = async (
    subject: x509.JsonName,
    endMs: number,
    extensions: x509.Extension[],
  ): Promise<Identity> => {
    const own = await newKeys();
    const cert = await x509.X509CertificateGenerator.create({
      subject,
      issuer: ca.subject,
      publicKey: own.publicKey,
      signingKey: keys.privateKey,
      signingAlgorithm: algorithm,
      notBefore: new Date(now - dayMs),
      notAfter: new Date(endMs),
      extensions,
    });
    return { key: await keyPem(own.privateKey), cert: cert.toString('pem') };
  };
  const endMs = now + days * dayMs;
  return {
    pem: ca.toString('pem'),
    issue: (hosts, { expired = false } = {}) => {
      const names = hosts.map((value) => ({ type: kindOf(value), value }));
      // The names of CA and server differ, else a verifier takes the certificate for self-signed.
      return sign([{ CN: ['simulated-pve'] }], expired ? now - dayMs / 2 : endMs, [
        new x509.SubjectAlternativeNameExtension(names),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      ]);
    },
    issueClient: (user, groups) =>
      sign([{ CN: [user] }, ...groups.map((group) => ({ O: [group] }))], endMs, [
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]),
      ]),
  };
}

const here = ['127.0.0.1', 'localhost'] as const;

/** Makes a CA and a server certificate for this machine in memory: nothing stays of it, however the process ends. */
export async function certificatesInMemory(): Promise<Certificates> {
  const ca = await newCa('Simulated PVE CA', 3650);
  return { ...(await ca.issue(here)), ca: ca.pem };
}

/** Makes a CA and a server certificate for `hosts` in `dir`, or reads the ones already there. */
export async function makeCertificates(
  dir: string,
  hosts: readonly string[] = here,
): Promise<CertificateFiles> {
  const file = (name: string): string => join(dir, name);
  if (!existsSync(file('server.pem'))) {
    mkdirSync(dir, { recursive: true });
    const ca = await newCa('Simulated PVE CA', 3650);
    const { key, cert } = await ca.issue(hosts);
    writeFileSync(file('ca.pem'), ca.pem);
    writeFileSync(file('server.key'), key, { mode: 0o600 });
    writeFileSync(file('server.pem'), cert);
  }
  return {
    key: readFileSync(file('server.key'), 'utf8'),
    cert: readFileSync(file('server.pem'), 'utf8'),
    ca: readFileSync(file('ca.pem'), 'utf8'),
    caFile: file('ca.pem'),
  };
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
}

function kindOf(host: string): 'ip' | 'dns' {
  return isIP(host) === 0 ? 'dns' : 'ip';
}

async function keyPem(key: webcrypto.CryptoKey): Promise<string> {
  const bytes = await webcrypto.subtle.exportKey('pkcs8', key);
  return x509.PemConverter.encode(bytes, 'PRIVATE KEY');
}
