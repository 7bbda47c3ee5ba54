import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ownFolder, removeFolder } from './folder.js';
import { findProgram } from './install.js';

/** A certificate for the loopback address that is its own authority, with its key, as PEM texts. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  remove(): Promise<void>;
}

/** Makes a certificate for `127.0.0.1` and `localhost`, good for some days. Needs the openssl program. */
export async function makeCertificate(): Promise<Certificate> {
  const folder = await ownFolder('tls');
  const certFile = join(folder, 'cert.pem');
  const keyFile = join(folder, 'key.pem');
  const args =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 7 -subj /CN=localhost';
  const alternatives = ['-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'];
  await promisify(execFile)(findProgram('openssl'), [
    ...args.split(' '),
    ...alternatives,
    ...['-keyout', keyFile, '-out', certFile],
  ]);
  const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
  return { cert, key, certFile, remove: () => removeFolder(folder) };
}
