/** System Use fields that give an ISO 9660 directory POSIX names and modes (SUSP 1.12, RRIP 1.12). */
import { ascii, both32 } from './isoFields.ts';

/** A System Use field (SUSP 4.1): two letters, its whole length, version 1. */
function systemUseField(signature: string, payload: Uint8Array): Uint8Array {
  return Buffer.concat([ascii(signature), Uint8Array.from([payload.length + 4, 1]), payload]);
}

/** Owner root, readable by all (RRIP 4.1.1, the 36-byte form every reader knows). */
export function posixField(isDirectory: boolean): Uint8Array {
  const mode = isDirectory ? 0o040555 : 0o100444;
  const links = isDirectory ? 2 : 1;
  return systemUseField('PX', Buffer.concat([both32(mode), both32(links), both32(0), both32(0)]));
}

/** The file's real name (RRIP 4.1.4). */
export function nameField(name: string): Uint8Array {
  return systemUseField('NM', Buffer.concat([Uint8Array.from([0]), ascii(name)]));
}

/** Announces Rock Ridge. Identifier and texts are those the RRIP draft prescribes; readers compare the identifier. */
export function extensionReference(): Uint8Array {
  const id = ascii('RRIP_1991A');
  const description = ascii(
    'THE ROCK RIDGE INTERCHANGE PROTOCOL PROVIDES SUPPORT FOR POSIX FILE SYSTEM SEMANTICS',
  );
  const source = ascii(
    'PLEASE CONTACT DISC PUBLISHER FOR SPECIFICATION SOURCE.  SEE PUBLISHER IDENTIFIER IN PRIMARY VOLUME DESCRIPTOR FOR CONTACT INFORMATION.',
  );
  const lengths = Uint8Array.from([id.length, description.length, source.length, 1]);
  return systemUseField('ER', Buffer.concat([lengths, id, description, source]));
}

/** Fields of the root's «.»: SP must come first (SUSP 5.3), CE points at the ER field in a sector of its own. */
export function rootSystemUse(erSector: number): Uint8Array {
  return Buffer.concat([
    systemUseField('SP', Uint8Array.from([0xbe, 0xef, 0])),
    posixField(true),
    systemUseField(
      'CE',
      Buffer.concat([both32(erSector), both32(0), both32(extensionReference().length)]),
    ),
  ]);
}
