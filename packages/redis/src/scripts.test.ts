import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

it('the embedded scripts are what the Lua files say', () => {
  const script = fileURLToPath(new URL('../scripts/embed-lua.mjs', import.meta.url));
  expect(() => execFileSync(process.execPath, [script, '--check'])).not.toThrow();
});
