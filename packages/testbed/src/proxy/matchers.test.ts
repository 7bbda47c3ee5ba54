import { expect, test } from 'vitest';
import { http2Answer, redisCommand, zooKeeperRequest } from './matchers.js';

test('a Redis command is found in any case, in a pipeline, and only as a command', () => {
  const pipeline = Buffer.from('*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nset\r\n$3\r\nget\r\n$1\r\nv\r\n');
  expect(redisCommand('SET')(pipeline)).toBe(true);
  expect(redisCommand('set', 'get')(pipeline)).toBe(true);
  expect(redisCommand('set', 'other')(pipeline)).toBe(false);
  expect(redisCommand('get')(pipeline)).toBe(false);
});

test('an HTTP/2 answer is a chunk with headers', () => {
  const frame = (type: number, length: number) =>
    Buffer.concat([Buffer.from([0, 0, length, type, 0, 0, 0, 0, 1]), Buffer.alloc(length)]);
  expect(http2Answer(Buffer.concat([frame(8, 4), frame(6, 8)]))).toBe(false);
  expect(http2Answer(Buffer.concat([frame(8, 4), frame(1, 20)]))).toBe(true);
  expect(http2Answer(Buffer.alloc(3))).toBe(false);
});

test('a ZooKeeper request is known by its operation and its path', () => {
  const frame = (operation: number, path: string) => {
    const bytes = Buffer.alloc(16 + path.length);
    bytes.writeInt32BE(12 + path.length, 0);
    bytes.writeInt32BE(operation, 8);
    bytes.writeInt32BE(path.length, 12);
    bytes.write(path, 16);
    return bytes;
  };
  const chunk = Buffer.concat([frame(1, '/a'), frame(4, '/b')]);
  expect(zooKeeperRequest('getData', '/b')(chunk)).toBe(true);
  expect(zooKeeperRequest('create', '/b')(chunk)).toBe(false);
  expect(zooKeeperRequest('create')(chunk)).toBe(true);
  expect(zooKeeperRequest('delete')(chunk)).toBe(false);
});
