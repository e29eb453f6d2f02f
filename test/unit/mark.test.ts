import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { formatMark, mergeMark, parseMark } from '../../activities/vm/identity.ts';
import type { Mark } from '../../activities/vm/identity.ts';

const mark: Mark = {
  managed: 'true',
  uid: '0f3a0000-0000-4000-8000-000000000001',
  createdAt: '2026-11-29T14:50:00Z',
  installation: '9c5b1f52-7f0e-4c0f-a3c0-1d7a5f2b6e10',
  proxy: 'crawlers/egress-a',
  spec: 'c0ffee'.padEnd(64, '0'),
  deletionPolicy: 'Delete',
};
const oldMark: Mark = {
  ...mark,
  installation: null,
  proxy: null,
  spec: null,
  deletionPolicy: null,
};
const oldText = [
  'proxy-operator-managed=true',
  'proxy-operator-uid=0f3a0000-0000-4000-8000-000000000001',
  'proxy-operator-created-at=2026-11-29T14:50:00Z',
].join('\n');

/** What Proxmox gives back for a description: blanks at the end are cut (pve/README 20). */
function stored(description: string): string {
  return description.replace(/\s+$/, '');
}

describe('the mark', () => {
  it("begins with the specification's three lines", () => {
    assert.equal(formatMark(oldMark), oldText);
    assert.deepEqual(formatMark(mark).split('\n'), [
      ...oldText.split('\n'),
      'proxy-operator-installation=9c5b1f52-7f0e-4c0f-a3c0-1d7a5f2b6e10',
      'proxy-operator-proxy=crawlers/egress-a',
      `proxy-operator-spec=${mark.spec}`,
      'proxy-operator-deletion-policy=Delete',
    ]);
  });

  it('is read from a description that has the three lines alone', () => {
    assert.deepEqual(parseMark(oldText), oldMark);
  });

  it('survives CRLF, blanks around the lines and text of an admin between them', () => {
    const edited = formatMark(mark)
      .split('\n')
      .map((line) => `  ${line} \t`)
      .join('\r\nnote of an admin\r\n');
    assert.deepEqual(parseMark(edited), mark);
  });

  it('tells a retained VM', () => {
    assert.equal(parseMark(formatMark({ ...mark, managed: 'retained' }))?.managed, 'retained');
  });

  it('has an empty UID when its line is empty or missing', () => {
    assert.equal(parseMark('proxy-operator-managed=true\nproxy-operator-uid=')?.uid, '');
    assert.equal(parseMark('proxy-operator-managed=true')?.uid, '');
  });

  it('counts the first of two contradicting lines', () => {
    assert.equal(parseMark(`${oldText}\nproxy-operator-uid=other`)?.uid, oldMark.uid);
  });

  it('does not know a deletion policy that is none', () => {
    const text = `${oldText}\nproxy-operator-deletion-policy=Keep`;
    assert.equal(parseMark(text)?.deletionPolicy, null);
  });

  const unmarked = [
    '',
    'egress proxy template',
    ' qmclone temporary file',
    'proxy-operator-uid=0f3a0000-0000-4000-8000-000000000001',
    'proxy-operator-managed=false',
    'proxy-operator-managed',
    'see proxy-operator-managed=true',
    'proxy-operator-managed = true',
  ];
  for (const description of unmarked) {
    it(`is not seen in ${JSON.stringify(description)}`, () => {
      assert.equal(parseMark(description), null);
    });
  }

  it('refuses a value that would add lines', () => {
    const forged = { ...mark, proxy: 'a/b\nproxy-operator-uid=other' };
    assert.throws(() => formatMark(forged), /proxy-operator-proxy/);
  });
});

describe('rewriting a description', () => {
  it('is the mark alone on an empty one', () => {
    assert.equal(mergeMark('', mark), formatMark(mark));
    assert.equal(mergeMark(' \r\n', mark), formatMark(mark));
  });

  it('puts the mark above the text of an unmarked one', () => {
    assert.equal(
      mergeMark('line one\n\nline two', mark),
      `${formatMark(mark)}\nline one\n\nline two`,
    );
  });

  it('completes an old mark where it stands and keeps the text around it', () => {
    assert.equal(
      mergeMark(`# owned by ops\n${oldText}\nticket 42`, mark),
      `# owned by ops\n${formatMark(mark)}\nticket 42`,
    );
  });

  it('gathers scattered and doubled lines of a mark into one block', () => {
    const scattered =
      'a\nproxy-operator-uid=x\nb\nproxy-operator-managed=true\nproxy-operator-uid=y\nc';
    assert.equal(mergeMark(scattered, mark), `a\n${formatMark(mark)}\nb\nc`);
  });

  it('keeps lines that only look like ours', () => {
    const kept = 'proxy-operator-contact=ops\nnot proxy-operator-uid=1';
    assert.ok(mergeMark(kept, mark).endsWith(kept));
  });

  it('takes lines out that the new mark no longer has', () => {
    assert.equal(mergeMark(formatMark(mark), oldMark), oldText);
  });

  it('keeps the whole mark and as much of the text as Proxmox takes', () => {
    const text = 'ü'.repeat(8192);
    const merged = mergeMark(text, mark);
    assert.equal(merged.length, 8192);
    assert.deepEqual(parseMark(merged), mark);
    assert.ok(merged.startsWith(`${formatMark(mark)}\nüüü`));
  });

  it('never leaves half a character at the limit', () => {
    for (let length = 4000; length < 4004; length += 1) {
      const merged = mergeMark(`${'a'.repeat(length)}${'😀'.repeat(5000)}`, mark);
      assert.ok(merged.isWellFormed());
      assert.equal(Array.from(merged).length, 8192);
    }
  });

  it('shortens the text above the mark when that below is not enough', () => {
    const merged = mergeMark(`${'a'.repeat(9000)}\n${formatMark(mark)}\nbelow`, mark);
    assert.deepEqual(parseMark(merged), mark);
    assert.ok(merged.length <= 8192);
    assert.ok(merged.startsWith('a'.repeat(7000)));
  });
});

const word = fc.stringMatching(/^[A-Za-z0-9:/_.-]{1,40}$/);
const maybe = fc.option(word, { nil: null });
const anyMark: fc.Arbitrary<Mark> = fc.record<Mark>(
  {
    managed: fc.constantFrom('true' as const, 'retained' as const),
    uid: fc.oneof(fc.uuid(), fc.constant('')),
    createdAt: maybe,
    installation: maybe,
    proxy: maybe,
    spec: maybe,
    deletionPolicy: fc.constantFrom('Delete' as const, 'Retain' as const, null),
  },
  { noNullPrototype: true },
);
const adminLine = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.constantFrom('', ' ', '\r', '# note', 'proxy-operator-other=1', 'proxy-operator-'),
);
const ownLine = fc.constantFrom(
  'proxy-operator-managed=true',
  'proxy-operator-uid=stale\r',
  '  proxy-operator-spec=stale  ',
);
const anyDescription = fc
  .array(fc.oneof({ weight: 3, arbitrary: adminLine }, { weight: 1, arbitrary: ownLine }), {
    maxLength: 12,
  })
  .map((lines) => lines.join('\n'));

describe('any description and any mark', () => {
  it('give the mark back after merging, also through Proxmox', () => {
    fc.assert(
      fc.property(anyDescription, anyMark, (description, wanted) => {
        const merged = mergeMark(description, wanted);
        assert.deepEqual(parseMark(merged), wanted);
        assert.equal(stored(merged), merged);
      }),
    );
  });

  it('change nothing when merged a second time', () => {
    fc.assert(
      fc.property(anyDescription, anyMark, (description, wanted) => {
        const merged = mergeMark(description, wanted);
        assert.equal(mergeMark(merged, wanted), merged);
      }),
    );
  });

  it("keep every line of others, in its order, through another mark's rewrite", () => {
    const others = (text: string) =>
      text
        .split('\n')
        .filter(
          (line) =>
            !/^\s*proxy-operator-(managed|uid|spec|created-at|installation|proxy|deletion-policy)=/.test(
              line,
            ),
        );
    fc.assert(
      fc.property(anyDescription, anyMark, anyMark, (description, first, second) => {
        const merged = mergeMark(mergeMark(description, first), second);
        const kept = others(merged).join('\n').trimEnd();
        assert.equal(kept, others(description.trimEnd()).join('\n').trimEnd());
      }),
    );
  });
});
