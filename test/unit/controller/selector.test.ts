import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { matches, parseSelector, SelectorInvalid } from '../../../controller/selector.ts';

const labels = { app: 'crawler', tier: 'a', 'example.org/site': 'fra-1', empty: '' };

describe('selectors', () => {
  for (const [selector, expected] of [
    ['', true],
    ['app=crawler', true],
    ['app==crawler', true],
    ['app = crawler', true],
    ['app=other', false],
    ['app!=other', true],
    ['app!=crawler', false],
    ['absent!=x', true],
    ['absent=x', false],
    ['empty=', true],
    ['tier in (a, b)', true],
    ['tier in (b,c)', false],
    ['absent in (a)', false],
    ['tier notin (b,c)', true],
    ['tier notin (a)', false],
    ['absent notin (a)', true],
    ['app', true],
    ['absent', false],
    ['!absent', true],
    ['! absent', true],
    ['!app', false],
    ['app=crawler,tier in (a,b),!absent', true],
    ['app=crawler,tier in (b,c),!absent', false],
    ['example.org/site=fra-1', true],
    ['constructor', false],
  ] as const) {
    it(`«${selector}» ${expected ? 'matches' : 'does not match'}`, () => {
      assert.equal(matches(parseSelector(selector), labels), expected);
    });
  }

  for (const selector of ['a=b=c', 'a in b', 'a in (b', '=b', 'a,,b', 'a in (b c)', 'a>1', '-a']) {
    it(`«${selector}» is refused, naming the part`, () => {
      assert.throws(() => parseSelector(selector), SelectorInvalid);
    });
  }
});
