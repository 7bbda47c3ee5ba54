import { once } from 'node:events';
import { createServer } from 'node:http';
import { instrument } from '@holdfast/otel';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';

/**
 * Serves the metrics of this process's locks at `/metrics`, where Prometheus reads them.
 *
 * @param {number} port 0 for any that is free
 */
export async function serveMetrics(port) {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const meterProvider = new MeterProvider({ readers: [exporter] });
  // The names of a few jobs are worth a label. Names made of ids (order:42) would be a time series each: leave it out.
  const stop = instrument({ meterProvider, nameOnMetrics: true });

  const server = createServer((request, response) => {
    if (request.url === '/metrics') exporter.getMetricsRequestHandler(request, response);
    else response.writeHead(404).end();
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${server.address().port}/metrics`,
    async close() {
      stop();
      server.close();
      server.closeAllConnections();
      await meterProvider.shutdown();
    },
  };
}
