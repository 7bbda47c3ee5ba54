import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { LockEvents } from '@holdfast/core';
import {
  type Attributes,
  type MeterProvider,
  metrics,
  type Span,
  SpanStatusCode,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';

/** How events become spans and metrics. */
export interface InstrumentOptions {
  /** Default: the global one. */
  readonly tracerProvider?: TracerProvider;
  /** Default: the global one. */
  readonly meterProvider?: MeterProvider;
  /**
   * Puts the lock's name on every metric, as `holdfast.lock.name`. Default false: names are often made of ids, and each
   * would be a time series of its own. Spans always carry the name.
   */
  readonly nameOnMetrics?: boolean;
}

const SCOPE = '@holdfast/otel';
const NAME = 'holdfast.lock.name';
const OWNER = 'holdfast.lock.owner';
const TOKEN = 'holdfast.lock.fencing_token';
const REASON = 'holdfast.lost.reason';
const ERROR_CODE = 'error.type';

/** Bounds of the histograms, in s: the SDK's own are meant for ms, and would put most of ours into one bucket. */
const SECONDS: readonly number[] = [
  0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600,
];

/**
 * Turns the events of every `Locks` in this process into OpenTelemetry spans and metrics, through the diagnostics
 * channels `holdfast:*`. Costs nothing until it is called.
 *
 * Spans: `holdfast.wait` (from asking to holding) and `holdfast.hold` (from holding to release or loss).
 * Metrics: `holdfast.wait.duration` and `holdfast.hold.duration` (histograms, s), and the counters
 * `holdfast.acquisitions`, `holdfast.contentions`, `holdfast.renewals`, `holdfast.losses`, `holdfast.errors`.
 *
 * @returns stops, and ends the spans of what is still held
 */
export function instrument(options: InstrumentOptions = {}): () => void {
  const tracer = (options.tracerProvider ?? trace.getTracerProvider()).getTracer(SCOPE);
  const meter = (options.meterProvider ?? metrics.getMeterProvider()).getMeter(SCOPE);
  const waited = meter.createHistogram('holdfast.wait.duration', {
    unit: 's',
    description: 'From asking for a lock to holding it',
    advice: { explicitBucketBoundaries: [...SECONDS] },
  });
  const held = meter.createHistogram('holdfast.hold.duration', {
    unit: 's',
    description: 'From holding a lock to its release or loss',
    advice: { explicitBucketBoundaries: [...SECONDS] },
  });
  const acquisitions = meter.createCounter('holdfast.acquisitions', { description: 'Locks acquired' });
  const contentions = meter.createCounter('holdfast.contentions', {
    description: 'Acquisitions that had to wait for others',
  });
  const renewals = meter.createCounter('holdfast.renewals', { description: 'Renewals confirmed' });
  const losses = meter.createCounter('holdfast.losses', { description: 'Locks lost, by reason' });
  const errors = meter.createCounter('holdfast.errors', { description: 'Faults that no call could carry' });
  const holds = new Map<string, { readonly span: Span; readonly since: number }>();

  const label = (event: { readonly name?: string }): Attributes =>
    options.nameOnMetrics === true && event.name !== undefined ? { [NAME]: event.name } : {};

  const end = (
    owner: string | undefined,
    at: Date,
  ): { readonly span: Span; readonly ms: number } | undefined => {
    const hold = owner === undefined ? undefined : holds.get(owner);
    if (owner === undefined || hold === undefined) return undefined;
    holds.delete(owner);
    return { span: hold.span, ms: at.getTime() - hold.since };
  };

  const listeners: { readonly [E in keyof LockEvents]: (event: LockEvents[E]) => void } = {
    waiting: (event) => contentions.add(1, label(event)),
    acquired(event) {
      const { at, name = '', owner = '', fencingToken } = event;
      const attributes = { [NAME]: name, [OWNER]: owner, [TOKEN]: String(fencingToken) };
      tracer.startSpan('holdfast.wait', { startTime: at.getTime() - event.waited, attributes }).end(at);
      holds.set(owner, {
        span: tracer.startSpan('holdfast.hold', { startTime: at, attributes }),
        since: at.getTime(),
      });
      acquisitions.add(1, label(event));
      waited.record(event.waited / 1000, label(event));
    },
    renewed: (event) => renewals.add(1, label(event)),
    released(event) {
      end(event.owner, event.at)?.span.end(event.at);
      held.record(event.heldFor / 1000, label(event));
    },
    lost(event) {
      const { reason } = event.error;
      losses.add(1, { ...label(event), [REASON]: reason });
      const hold = end(event.owner, event.at);
      if (hold === undefined) return;
      hold.span.setAttribute(REASON, reason);
      hold.span.setStatus({ code: SpanStatusCode.ERROR, message: event.error.message });
      hold.span.end(event.at);
      held.record(hold.ms / 1000, label(event));
    },
    error(event) {
      const { code } = event.error as { readonly code?: unknown };
      errors.add(1, { ...label(event), [ERROR_CODE]: typeof code === 'string' ? code : event.error.name });
    },
  };

  const stops = (Object.keys(listeners) as (keyof LockEvents)[]).map((event) => {
    const listener = listeners[event] as (message: unknown) => void;
    const receive = (message: unknown): void => listener(message);
    subscribe(`holdfast:${event}`, receive);
    return () => unsubscribe(`holdfast:${event}`, receive);
  });

  return () => {
    for (const stop of stops) stop();
    for (const { span } of holds.values()) span.end();
    holds.clear();
  };
}
