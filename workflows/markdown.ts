/** Markdown as the Temporal UI shows it. Pure. */

/** Text of Proxmox or of a person, shown to the letter: `<user>` is no tag, `*` no emphasis, `|` no end of a cell. */
export function plain(text: string): string {
  return text.replaceAll(/[\\`*_<>[\]|~]/g, '\\$&');
}
