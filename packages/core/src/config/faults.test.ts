import { expect, it } from 'vitest';
import { jsonFault, parseYaml } from './faults.js';

/** A parser's name for a fault, such as `BAD_INDENT` or `CommaExpected`: a word for programmers. */
const CODE_WORD = /[A-Z]{2,}_[A-Z]+|[a-z][A-Z]/;

it.each([
  [
    'a comma too many',
    '{\n  "backend": "redis",\n}',
    'line 3, column 1: a name in double quotes must stand here',
  ],
  ['a comma too few', '{\n  "backend": "redis"\n  "redis": {}\n}', 'line 3, column 3: a comma'],
  [
    'a quote that is not closed',
    '{\r\n  "backend": "hunter2,\r\n  "redis": 1 }',
    'line 2, column 14: a closing double quote is missing',
  ],
  ['a colon that is missing', '{ "backend" "redis" }', 'line 1, column 13: a colon is missing'],
  ['a comment', '{ "backend": "redis" } // hunter2', 'line 1, column 24: JSON has no comments'],
  ['names without quotes', '{ backend: "redis" }', 'line 1, column 3: this is no JSON value'],
  ['quotes of the wrong kind', '{\n\n"backend": \'hunter2\' }', 'line 3, column 12: this is no JSON value'],
  ['a word that is no value', '[1, hunter2]', 'line 1, column 5: this is no JSON value'],
  ['a brace that is missing', '{\n  "backend": "redis"\n', 'line 3, column 1: a closing brace } is missing'],
  ['a bracket that is missing', '["redis"', 'line 1, column 9: a closing bracket ] is missing'],
  ['more than one value', '{} {}', 'line 1, column 4: the file should have ended'],
  ['a backslash too few', '"C:\\hunter2"', 'line 1, column 1: nothing of this kind may follow a backslash'],
  ['half a character code', '"\\u00"', 'line 1, column 1: four hexadecimal digits'],
  ['a tab in a text', '"a\tb"', 'line 1, column 1: a control character'],
  ['half a number', '[1.]', 'line 1, column 2: this number is not complete'],
  ['nothing at all', '', 'line 1, column 1: a value must stand here'],
])('tells the place and the fault of JSON in plain words: %s', async (_what, text, words) => {
  expect(() => JSON.parse(text)).toThrow();
  const fault = await jsonFault(text);
  expect(fault).toContain(` at ${words}`);
  expect(fault).not.toMatch(CODE_WORD);
  expect(fault).not.toContain('hunter2');
});

it.each([
  [
    'a line that is indented too little',
    'a:\n   b: 1\n  c: 2\n',
    'line 3, column 1: this line is not indented',
  ],
  [
    'a line that is indented too far',
    'a: x\n  b: 1\n',
    'line 1, column 4: names or a list begin on this line',
  ],
  ['a tab', 'a:\n\tb: 1\n', 'line 2, column 1: lines are indented with spaces'],
  ['a second colon', 'a: hunter2: x\n', 'line 1, column 4: names or a list begin on this line'],
  ['a colon that is missing', 'a: 1\nhunter2\nb: 1\n', 'line 2, column 1: a colon is missing'],
  ['a quote that is not closed', 'a: "hunter2\n', 'line 2, column 1: a quote that was opened before this'],
  [
    'a brace that is not closed',
    'a: { b: hunter2\n',
    'line 2, column 1: this line is not indented as its neighbours',
  ],
  ['a name that is given twice', 'a: 1\na: 2\n', 'line 2, column 1: this name was given before'],
  ['a text after a text', 'a: "hunter2" oops\n', 'line 1, column 14: this does not belong here'],
  [
    'a text that begins with @',
    'a: @hunter2\n',
    'line 1, column 4: a text may not begin with this character',
  ],
  [
    'a text that begins with !',
    'a: !hunter2 x\n',
    'line 1, column 4: a value that begins with ! names a type',
  ],
  [
    'a text that begins with *',
    'a: 1\nb: *hunter2\n',
    'line 2, column 4: a value that begins with * stands for',
  ],
  ['a star alone', 'a: *\n', 'line 1, column 4: a value that begins with * or & needs a name'],
  ['a backslash', 'a: "\\qhunter2"\n', 'line 1, column 5: nothing of this kind may follow a backslash'],
  ['no space before a comment', 'a: "b"#hunter2\n', 'line 1, column 7: a space is missing before #'],
  ['two documents', 'a: 1\n---\nb: 2\n', 'line 2, column 1: a config file holds one document'],
])('tells the place and the fault of YAML in plain words: %s', async (_what, text, words) => {
  const { fault } = await parseYaml(text);
  expect(fault).toContain(` at ${words}`);
  expect(fault).not.toMatch(CODE_WORD);
  expect(fault).not.toContain('hunter2');
});
