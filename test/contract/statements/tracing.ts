import { changed, proven, testsIn, type Section } from '../statement.ts';

const lines = 'test/steps/lines.test.ts';
const spans = 'test/steps/spans.test.ts';
const telemetry = 'test/steps/runtime/telemetry.test.ts';

/** *Tracing*, lines 453 to 471 of the page. */
export const tracing: Section = {
  title: 'Tracing',
  from: 453,
  to: 471,
  statements: [
    {
      line: 455,
      statement: 'Spans leave only with an exporter configured',
      proof: proven(
        testsIn(
          telemetry,
          'that OTEL_EXPORTER_OTLP_ENDPOINT names gets the spans',
          'that OTEL_EXPORTER_OTLP_TRACES_ENDPOINT names gets the spans',
          'that is not configured gets none: no span is recorded',
        ),
      ),
    },
    {
      line: 456,
      to: 457,
      statement: 'Each API request is a child of the span of its operation',
      proof: proven(
        testsIn(
          'test/system/longLife.test.ts',
          'all of it is one trace, from the watcher to the requests',
        ),
        testsIn(
          spans,
          'of a request are children of the span of their step, and nothing is counted twice',
        ),
      ),
    },
    {
      line: 457,
      to: 459,
      statement: 'Operations are create, get, delete and list, and the check of the monitor',
      proof: changed(
        'an operation is a step, and its span has the name of the step',
        'design §11',
        testsIn(spans, 'are one a step, named after it, and one a request, named after its method'),
      ),
    },
    {
      line: 463,
      statement:
        'The span of a request is named after its method and has method, URL, server address and port, and status',
      proof: proven(
        testsIn(spans, 'are one a step, named after it, and one a request, named after its method'),
        testsIn(spans, 'of a request have method, URL, server and status'),
      ),
    },
    {
      line: 465,
      to: 467,
      statement: 'A request without a span above it makes none',
      proof: proven(testsIn(telemetry, 'makes none of a request that belongs to nothing')),
    },
    {
      line: 467,
      to: 469,
      statement:
        'Logging opens no span, and the line of a request carries the span of the operation, not that of the request',
      proof: proven(
        testsIn(
          lines,
          "carries the span of its step, not of its own request; the step's lines carry the same one",
        ),
        testsIn(
          spans,
          'of a request are children of the span of their step, and nothing is counted twice',
        ),
      ),
    },
    {
      line: 469,
      to: 470,
      statement: 'No span records the token, which travels in a header, nor cloud-init',
      proof: proven(
        testsIn(spans, 'record neither the token nor cloud-init'),
        testsIn(telemetry, 'makes a span of a request under an operation, named after its method'),
      ),
    },
  ],
  quiet: [
    { line: 453, what: 'heading' },
    { line: 461, to: 462, what: 'head of the table' },
  ],
};
