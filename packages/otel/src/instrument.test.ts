import { createLocks, memoryBackend } from '@holdfast/core';
import { SpanStatusCode } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterEach, describe, expect, it } from 'vitest';
import { type InstrumentOptions, instrument } from './instrument.js';

let stop: (() => void) | undefined;
afterEach(() => stop?.());

/** The SDK with exporters that keep what they are given. */
function sdk(options: InstrumentOptions = {}) {
  const spans = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  stop = instrument({ tracerProvider, meterProvider, ...options });
  const points = async (metric: string) => {
    await reader.forceFlush();
    const scopes = exporter.getMetrics().at(-1)?.scopeMetrics ?? [];
    const found = scopes
      .flatMap((scope) => scope.metrics)
      .find(({ descriptor }) => descriptor.name === metric);
    return found?.dataPoints ?? [];
  };
  return { spans, points };
}

describe('instrument', () => {
  it('makes a span of the wait and one of the hold, with name and token', async () => {
    const { spans, points } = sdk();
    const locks = await createLocks(memoryBackend());
    const hold = await locks.lock('job').acquire();
    const waiting = locks.lock('job').acquire();
    await hold.release();
    await (await waiting).release();
    await locks.close();
    const names = spans.getFinishedSpans().map(({ name }) => name);
    expect(names.filter((name) => name === 'holdfast.wait')).toHaveLength(2);
    expect(names.filter((name) => name === 'holdfast.hold')).toHaveLength(2);
    const held = spans.getFinishedSpans().find(({ name }) => name === 'holdfast.hold');
    expect(held?.attributes).toMatchObject({
      'holdfast.lock.name': 'job',
      'holdfast.lock.fencing_token': String(hold.fencingToken),
    });
    expect((await points('holdfast.acquisitions'))[0]?.value).toBe(2);
    expect((await points('holdfast.contentions'))[0]?.value).toBe(1);
    expect((await points('holdfast.wait.duration'))[0]?.value).toMatchObject({ count: 2 });
    expect((await points('holdfast.hold.duration'))[0]?.value).toMatchObject({ count: 2 });
  });

  it('tells apart durations of a millisecond, a second and a minute', async () => {
    const { points } = sdk();
    const locks = await createLocks(memoryBackend());
    await (await locks.lock('job').acquire()).release();
    for (const metric of ['holdfast.wait.duration', 'holdfast.hold.duration']) {
      const value = (await points(metric))[0]?.value as { buckets: { boundaries: number[] } } | undefined;
      const bounds = value?.buckets.boundaries ?? [];
      const bucketOf = (seconds: number) => bounds.filter((bound) => seconds > bound).length;
      expect(new Set([0.001, 0.03, 0.9, 9, 59, 3000].map(bucketOf)).size).toBe(6);
    }
    await locks.close();
  });

  it('counts a loss by its reason, and marks the span as failed', async () => {
    const { spans, points } = sdk();
    const locks = await createLocks(memoryBackend());
    await locks.lock('job').acquire();
    await locks.forceRelease('job');
    await locks.close();
    expect(await points('holdfast.losses')).toMatchObject([
      { value: 1, attributes: { 'holdfast.lost.reason': 'forced' } },
    ]);
    const held = spans.getFinishedSpans().find(({ name }) => name === 'holdfast.hold');
    expect(held?.status.code).toBe(SpanStatusCode.ERROR);
  });

  it('puts names on metrics only when asked', async () => {
    const quiet = sdk();
    const locks = await createLocks(memoryBackend());
    await (await locks.lock('a').acquire()).release();
    expect((await quiet.points('holdfast.acquisitions'))[0]?.attributes).toEqual({});
    stop?.();
    const loud = sdk({ nameOnMetrics: true });
    await (await locks.lock('a').acquire()).release();
    expect((await loud.points('holdfast.acquisitions'))[0]?.attributes).toEqual({
      'holdfast.lock.name': 'a',
    });
    await locks.close();
  });

  it('ends the spans of what is still held when it stops', async () => {
    const { spans } = sdk();
    const locks = await createLocks(memoryBackend());
    await locks.lock('job').acquire();
    stop?.();
    expect(spans.getFinishedSpans().map(({ name }) => name)).toContain('holdfast.hold');
    await locks.close();
  });
});
