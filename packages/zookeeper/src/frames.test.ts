import { describe, expect, test } from 'vitest';
import { FrameReader, NotZooKeeperError } from './frames.js';

function frame(text: string): Buffer {
  const bytes = Buffer.alloc(4 + text.length, text);
  bytes.writeInt32BE(text.length);
  bytes.write(text, 4);
  return bytes;
}

describe('a frame reader', () => {
  const stream = Buffer.concat([frame('one'), frame(''), frame('three'), frame('x'.repeat(1000))]);
  const frames = [frame('one'), frame(''), frame('three'), frame('x'.repeat(1000))];

  test.each([1, 2, 3, 5, 7, 64, 5000])('finds the frames in chunks of %i bytes', (size) => {
    const reader = new FrameReader();
    const found: Buffer[] = [];
    for (let start = 0; start < stream.length; start += size) {
      found.push(...reader.push(stream.subarray(start, start + size)));
    }
    expect(found).toEqual(frames);
  });

  test.each(['HTTP/1.1 400 Bad Request', '-ERR unknown command', '\xff\xff\xff\xfftext'])(
    'refuses %j',
    (text) => {
      expect(() => new FrameReader().push(Buffer.from(text, 'latin1'))).toThrow(NotZooKeeperError);
    },
  );
});
