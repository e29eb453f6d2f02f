/** Numbers and texts as ISO 9660 writes them. */

/** One byte per character. */
export function ascii(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}

/** UCS-2, big-endian (Joliet). */
export function ucs2(text: string): Uint8Array {
  return Buffer.from(text, 'utf16le').swap16();
}

/** Fixed-width text filled up with blanks. */
export function padded(text: string, width: number): Uint8Array {
  return ascii(text.padEnd(width, ' ').slice(0, width));
}

/** The same in UCS-2; `width` counts bytes, and an odd last one stays zero. */
export function paddedUcs2(text: string, width: number): Uint8Array {
  const characters = Math.floor(width / 2);
  const field = Buffer.alloc(width);
  field.set(ucs2(text.padEnd(characters, ' ').slice(0, characters)));
  return field;
}

/** 16-bit number, little-endian and then big-endian (ECMA-119 7.2.3). */
export function both16(value: number): Uint8Array {
  const field = Buffer.alloc(4);
  field.writeUInt16LE(value, 0);
  field.writeUInt16BE(value, 2);
  return field;
}

/** 32-bit number, little-endian and then big-endian (ECMA-119 7.3.3). */
export function both32(value: number): Uint8Array {
  const field = Buffer.alloc(8);
  field.writeUInt32LE(value, 0);
  field.writeUInt32BE(value, 4);
  return field;
}
