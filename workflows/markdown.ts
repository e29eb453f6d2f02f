/** Markdown as the Temporal UI shows it. Pure. */

/** A command line in a sentence: up to where the sentence goes on. */
const command =
  /(?<![\w-])(?:qm|pvesm|pvecm|pveum|ha-manager) [a-z](?:(?!;|, | \(|\)| and | on |\.$|\. ).)*/g;

/**
 * Text of Proxmox or of a person, shown to the letter: `<user>` is no tag, `*` no emphasis, `|` no end of a cell. Command lines
 * become code, because the UI makes dashes and quotation marks of `--` and `"` that no shell takes (seen with UI 2.54.1).
 */
export function plain(text: string): string {
  let shown = '';
  let at = 0;
  for (const { 0: line, index } of text.matchAll(command)) {
    shown += `${escaped(text.slice(at, index))}\`${line.replaceAll('`', "'")}\``;
    at = index + line.length;
  }
  return shown + escaped(text.slice(at));
}

function escaped(text: string): string {
  return text.replaceAll(/[\\`*_<>[\]|~]/g, '\\$&');
}
