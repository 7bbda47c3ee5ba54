import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';

export interface EtcdAccess {
  readonly scheme: 'http' | 'https';
  readonly ca?: string;
  readonly rootPassword?: string;
}

/** Asks etcd something through its JSON gateway: enough for the testbed, and no gRPC client whose faults matter. */
export async function askEtcd<Answer>(
  port: number,
  access: EtcdAccess,
  path: string,
  body?: Readonly<Record<string, unknown>>,
): Promise<Answer> {
  const token =
    body !== undefined && access.rootPassword !== undefined ? await logIn(port, access) : undefined;
  return send(port, access, path, body, token);
}

async function logIn(port: number, access: EtcdAccess): Promise<string> {
  const credentials = { name: 'root', password: access.rootPassword };
  const { token } = await send<{ token: string }>(port, access, '/v3/auth/authenticate', credentials);
  return token;
}

function send<Answer>(
  port: number,
  access: EtcdAccess,
  path: string,
  body?: Readonly<Record<string, unknown>>,
  token?: string,
): Promise<Answer> {
  const request = access.scheme === 'http' ? plainRequest : tlsRequest;
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `${access.scheme}://127.0.0.1:${port}${path}`,
      {
        method: body === undefined ? 'GET' : 'POST',
        agent: false,
        timeout: 2000,
        ...(access.ca !== undefined && { ca: access.ca }),
        ...(token !== undefined && { headers: { authorization: token } }),
      },
      (incoming) => {
        let text = '';
        incoming.setEncoding('utf8');
        incoming.on('data', (chunk: string) => {
          text += chunk;
        });
        incoming.once('error', reject);
        incoming.once('end', () => {
          if (incoming.statusCode === 200) resolve(JSON.parse(text) as Answer);
          else reject(new Error(`etcd answers ${incoming.statusCode} to ${path}: ${text.slice(0, 300)}`));
        });
      },
    );
    outgoing.once('timeout', () => outgoing.destroy(new Error(`etcd does not answer ${path}`)));
    outgoing.once('error', reject);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
