import { join } from 'node:path';
import ts from 'typescript';
import { pages, read, root } from './workspace.js';

/** A fenced block of a page. */
export interface CodeBlock {
  readonly page: string;
  /** The line in the page on which its code begins, from 1. */
  readonly line: number;
  readonly language: string;
  /** `[hold.mjs]` behind the language. */
  readonly name: string | undefined;
  readonly code: string;
}

/** The fenced blocks of a page, in order. */
export function codeBlocks(page: string): CodeBlock[] {
  const text = read(page);
  return [...text.matchAll(/^```(\w+)(?: \[([^\]]+)\])?[^\n]*\n([\s\S]*?)^```$/gm)].map((match) => {
    const [, language = '', name, code = ''] = match;
    const line = text.slice(0, match.index).split('\n').length + 1;
    return { page, line, language, name, code };
  });
}

/**
 * Compiles every TypeScript block of the documentation against the packages as they are, strictly. A block is a module of its own;
 * what it takes for granted (`lock`, `order`, `charge`) is declared in `prelude.d.ts`.
 *
 * @returns what the compiler complains about, each with the page and the line
 */
export function compileBlocks(blocks: readonly CodeBlock[]): string[] {
  const files = new Map<string, CodeBlock>();
  for (const [index, block] of blocks.entries())
    files.set(join(root, `packages/docs/block-${index}.ts`), block);
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2024.d.ts', 'lib.esnext.disposable.d.ts'],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: ['node'],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  // A block without an import would share its names with all others.
  const textOf = (block: CodeBlock): string => `${block.code}\nexport {};\n`;
  host.fileExists = (path) => files.has(path) || fileExists.call(host, path);
  host.readFile = (path) => {
    const block = files.get(path);
    return block === undefined ? readFile.call(host, path) : textOf(block);
  };
  host.getSourceFile = (path, version, ...rest) => {
    const block = files.get(path);
    if (block === undefined) return getSourceFile.call(host, path, version, ...rest);
    return ts.createSourceFile(path, textOf(block), version);
  };
  const prelude = join(root, 'packages/docs/prelude.d.ts');
  const program = ts.createProgram([prelude, ...files.keys()], options, host);
  return ts.getPreEmitDiagnostics(program).map(({ file, start = 0, messageText }) => {
    const message = ts.flattenDiagnosticMessageText(messageText, ' ');
    const block = file === undefined ? undefined : files.get(file.fileName);
    if (file === undefined || block === undefined) return `${file?.fileName ?? 'compiler'}: ${message}`;
    const line = block.line + file.getLineAndCharacterOfPosition(start).line;
    return `${block.page}:${line}: ${message}`;
  });
}

/** Every block of every page for users in these languages. */
export function allBlocks(...languages: readonly string[]): CodeBlock[] {
  const forUsers = pages().filter((page) => !page.startsWith('packages/testbed/'));
  return forUsers.flatMap((page) => codeBlocks(page).filter(({ language }) => languages.includes(language)));
}
