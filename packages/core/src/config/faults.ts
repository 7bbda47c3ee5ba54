import type { ParseError } from 'jsonc-parser';
import type { ErrorCode, YAMLError } from 'yaml';

/**
 * The first fault of a text that is not valid JSON: `at line 3, column 1: a comma is missing`. In words of ours, since
 * whatever quotes the text may quote a password.
 */
export async function jsonFault(text: string): Promise<string> {
  const { parse, printParseErrorCode } = await import('jsonc-parser');
  const faults: ParseError[] = [];
  parse(text, faults, { disallowComments: true });
  const [fault] = faults;
  if (fault === undefined) return '';
  const words = JSON_FAULTS[printParseErrorCode(fault.error)] ?? 'this is not expected here';
  const lines = text.slice(0, fault.offset).split(/\r\n|\r|\n/);
  return at(lines.length, (lines.at(-1) ?? '').length + 1, words);
}

/** By the name that jsonc-parser has for it. */
const JSON_FAULTS: Readonly<Record<string, string>> = {
  InvalidSymbol: 'this is no JSON value; names and texts stand in double quotes',
  InvalidNumberFormat: 'this is no number',
  PropertyNameExpected: 'a name in double quotes must stand here; after the last entry there is no comma',
  ValueExpected: 'a value must stand here; after the last entry there is no comma',
  ColonExpected: 'a colon is missing between a name and its value',
  CommaExpected: 'a comma or a closing bracket is missing before this',
  CloseBraceExpected: 'a closing brace } is missing',
  CloseBracketExpected: 'a closing bracket ] is missing',
  EndOfFileExpected: 'the file should have ended before this',
  InvalidCommentToken: 'JSON has no comments; a config with comments can be YAML',
  UnexpectedEndOfComment: 'JSON has no comments, and this one does not end',
  UnexpectedEndOfString: 'a closing double quote is missing on this line',
  UnexpectedEndOfNumber: 'this number is not complete',
  InvalidUnicode: 'four hexadecimal digits must follow \\u',
  InvalidEscapeCharacter: 'nothing of this kind may follow a backslash; a backslash itself is written \\\\',
  InvalidCharacter: 'a control character, such as a tab, may not stand in a text; write it as \\t or \\u0009',
};

/** A YAML text as a value, or its first fault in the words of `jsonFault`. */
export async function parseYaml(text: string): Promise<{ value: unknown; fault?: string }> {
  const { isAlias, LineCounter, parseDocument, visit } = await import('yaml');
  const lineCounter = new LineCounter();
  const place = (offset: number, words: string): string => {
    const { line, col } = lineCounter.linePos(offset);
    return at(line, col, words);
  };
  // Pretty errors quote the source.
  const document = parseDocument(text, { prettyErrors: false, lineCounter, logLevel: 'error' });
  // A warning means text that was not taken as it stands, such as a password that begins with an exclamation mark.
  const [error] = [...document.errors, ...document.warnings];
  if (error !== undefined) return { value: undefined, fault: place(error.pos[0], yamlWords(error)) };
  try {
    return { value: document.toJS() };
  } catch {
    // An alias that names nothing, or too many: the message would quote it.
    let fault = ': its aliases, values that begin with *, stand for too much';
    visit(document, (_key, node) => {
      if (!isAlias(node) || node.resolve(document) !== undefined) return undefined;
      fault = place(
        node.range?.[0] ?? 0,
        'a value that begins with * stands for another one, and there is none of that name; quote it if it is a text',
      );
      return visit.BREAK;
    });
    return { value: undefined, fault };
  }
}

function yamlWords({ code, message }: YAMLError): string {
  if (code !== 'MISSING_CHAR') return YAML_FAULTS[code] ?? 'this is not expected here';
  // One code for whatever is missing: these messages quote nothing, and tell more.
  const [, words] = MISSING.find(([pattern]) => pattern.test(message)) ?? [];
  return words ?? YAML_FAULTS.MISSING_CHAR;
}

const MISSING: readonly (readonly [RegExp, string])[] = [
  [/closing .quote/, 'a quote that was opened before this is not closed'],
  [/followed by map values/, 'a name must be followed by a colon, a space and its value'],
  [/^Comments must/, 'a space is missing before #'],
  [/^Missing space after :/, 'a space is missing after the colon'],
  [/^Missing ,/, 'a comma is missing between two entries'],
  [/without - indicator/, 'an entry of a list must begin with "- "'],
];

const YAML_FAULTS: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'a value that begins with * can have no & or ! before it; quote it if it is a text',
  BAD_ALIAS: 'a value that begins with * or & needs a name after it; quote it if it is a text',
  BAD_COLLECTION_TYPE: 'the type that ! names does not fit this value; quote a text that begins with !',
  BAD_DIRECTIVE: 'a line that begins with % is a directive, and this one is not known',
  BAD_DQ_ESCAPE:
    'nothing of this kind may follow a backslash in double quotes; use single quotes, or write \\\\ for a backslash',
  BAD_INDENT: 'this line is not indented as its neighbours are, or a bracket before it is not closed',
  BAD_PROP_ORDER: 'a & or ! stands before the mark that it should follow; quote a text that begins with one',
  BAD_SCALAR_START: 'a text may not begin with this character; quote it',
  BLOCK_AS_IMPLICIT_KEY:
    'names or a list begin on this line and go on below it; indent the lines below less, or quote a text with ": " in it',
  BLOCK_IN_FLOW: 'between braces or brackets, entries are separated by commas and not by lines',
  DUPLICATE_KEY: 'this name was given before',
  IMPOSSIBLE: 'this is not expected here',
  KEY_OVER_1024_CHARS: 'this name is longer than 1,024 characters',
  MISSING_CHAR: 'a character is missing before this',
  MULTILINE_IMPLICIT_KEY: 'a colon is missing after this name, or stands on another line',
  MULTIPLE_ANCHORS: 'a value can have but one &; quote a text that begins with &',
  MULTIPLE_DOCS: 'a config file holds one document; remove what follows the line ---',
  MULTIPLE_TAGS: 'a value can have but one !; quote a text that begins with !',
  NON_STRING_KEY: 'a name must be a text',
  RESOURCE_EXHAUSTION: 'its values are nested too deep',
  TAB_AS_INDENT: 'lines are indented with spaces, not with tabs',
  TAG_RESOLVE_FAILED:
    'a value that begins with ! names a type, and this one is not known; quote it if it is a text',
  UNEXPECTED_TOKEN: 'this does not belong here; quote a text with special characters in it',
};

function at(line: number, column: number, words: string): string {
  return ` at line ${line}, column ${column}: ${words}`;
}
