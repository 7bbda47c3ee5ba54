import { svg } from '@holdfast/testbed';

export type Theme = 'light' | 'dark';

interface Palette {
  readonly back: string;
  readonly text: string;
  readonly soft: string;
  readonly box: string;
  readonly a: string;
  readonly b: string;
  readonly bad: string;
  readonly good: string;
}

const PALETTES: Readonly<Record<Theme, Palette>> = {
  light: {
    back: '#ffffff',
    text: '#1f2328',
    soft: '#59636e',
    box: '#eef1f4',
    a: '#9cc9ff',
    b: '#ffd58a',
    bad: '#cf222e',
    good: '#1a7f37',
  },
  dark: {
    back: '#1b1b1f',
    text: '#f0f6fc',
    soft: '#9198a1',
    box: '#2a2d33',
    a: '#1f4f8f',
    b: '#7a5200',
    bad: '#ff7b72',
    good: '#56d364',
  },
};

// Narrow, so that the text stays readable on a telephone.
const WIDTH = 440;

/** A picture, drawn in the colours of a theme. */
export type Picture = (colour: Palette) => {
  readonly title: string;
  readonly height: number;
  readonly parts: string[];
};

/** The pictures of the documentation, by the name of their files. */
export const PICTURES: Readonly<Record<string, Picture>> = { fencing, validity, queue, choosing };

/** The picture as a file. */
export function drawPicture(picture: Picture, theme: Theme): string {
  const colour = PALETTES[theme];
  const { title, height, parts } = picture(colour);
  return `${svg.element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      width: WIDTH,
      height,
      viewBox: `0 0 ${WIDTH} ${height}`,
      role: 'img',
      'font-family': 'system-ui, Helvetica, Arial, sans-serif',
      'font-size': 13,
    },
    [
      svg.title(title),
      svg.element('rect', { width: WIDTH, height, rx: 6, fill: colour.back }),
      ...parts,
    ].join('\n'),
  )}\n`;
}

/** A paused holder, its successor, and the resource that knows better. */
function fencing(colour: Palette): ReturnType<Picture> {
  const lane = (y: number, name: string): string[] => [
    svg.text(12, y + 5, name, { fill: colour.text, 'font-weight': 'bold' }),
    line(90, y, 430, y, colour.soft, '2 4'),
  ];
  return {
    title:
      'A is paused past its ttl, B takes the lock with a higher token, and the resource refuses what A writes late',
    height: 238,
    parts: [
      ...lane(40, 'A'),
      ...lane(110, 'B'),
      ...lane(196, 'resource'),
      bar(86, 26, 110, colour.a, 'holds, 33', colour),
      bar(196, 26, 190, colour.back, 'stands still', colour, '4 3'),
      svg.text(196, 74, 'the ttl of A ends', { fill: colour.soft, 'text-anchor': 'middle' }),
      line(196, 54, 196, 62, colour.soft),
      bar(206, 96, 160, colour.b, 'holds, 34', colour),
      arrow(270, 124, 270, 186, colour.good),
      svg.text(264, 158, 'writes, 34 ✓', { fill: colour.good, 'text-anchor': 'end' }),
      arrow(400, 54, 400, 186, colour.bad),
      svg.text(394, 158, 'writes, 33 ✗', { fill: colour.bad, 'text-anchor': 'end' }),
      svg.text(270, 218, 'has seen 34', { fill: colour.soft, 'text-anchor': 'middle' }),
      svg.text(400, 218, 'refuses 33', { fill: colour.bad, 'text-anchor': 'middle' }),
    ],
  };
}

/** Why the holder stops believing before the server lets others in. */
function validity(colour: Palette): ReturnType<Picture> {
  return {
    title:
      'The holder counts from before it asked, the server from when it heard: so the holder always stops first',
    height: 200,
    parts: [
      svg.text(12, 46, 'holder', { fill: colour.text, 'font-weight': 'bold' }),
      svg.text(12, 146, 'server', { fill: colour.text, 'font-weight': 'bold' }),
      line(80, 60, 430, 60, colour.soft, '2 4'),
      line(80, 160, 430, 160, colour.soft, '2 4'),
      arrow(90, 60, 130, 152, colour.soft),
      svg.text(86, 110, 'asks', { fill: colour.soft }),
      arrow(130, 160, 170, 68, colour.soft),
      svg.text(158, 110, 'answers', { fill: colour.soft }),
      line(90, 30, 90, 60, colour.text),
      bar(90, 28, 250, colour.a, 'believes: ttl less 1 % and 2 ms', colour),
      bar(130, 146, 270, colour.b, 'keeps it taken: ttl', colour),
      line(340, 22, 340, 92, colour.bad),
      svg.text(334, 78, 'isHeld() is false,', { fill: colour.bad, 'text-anchor': 'end' }),
      svg.text(334, 94, 'signal aborts', { fill: colour.bad, 'text-anchor': 'end' }),
      line(400, 140, 400, 184, colour.good),
      svg.text(396, 192, 'others may hold', { fill: colour.good, 'text-anchor': 'end' }),
    ],
  };
}

/** Who is woken. */
function queue(colour: Palette): ReturnType<Picture> {
  const place = (x: number, label: string, fill: string): string[] => [
    svg.element('rect', { x, y: 40, width: 84, height: 36, rx: 6, fill, stroke: colour.soft }),
    svg.text(x + 42, 63, label, { fill: colour.text, 'text-anchor': 'middle' }),
  ];
  return {
    title: 'A release wakes the first waiter and nobody else; a newcomer joins at the end',
    height: 120,
    parts: [
      ...place(10, 'A holds', colour.a),
      ...place(122, 'B, first', colour.b),
      ...place(234, 'C', colour.box),
      ...place(346, 'D', colour.box),
      path('M 52 40 C 52 10, 164 10, 164 36', colour.good),
      svg.text(108, 12, 'release wakes B alone', {
        fill: colour.good,
        'text-anchor': 'middle',
        'font-size': 12,
      }),
      path('M 388 112 L 388 80', colour.soft),
      svg.text(380, 104, 'newcomers join at the end, tryAcquire included', {
        fill: colour.soft,
        'text-anchor': 'end',
        'font-size': 12,
      }),
    ],
  };
}

const QUESTIONS: readonly (readonly [question: readonly string[], yes: readonly string[]])[] = [
  [['Would a constraint, an atomic', 'update or a row lock do?'], ['no lock at all']],
  [['Is it one process?'], ['memory:']],
  [['Is it one machine?'], ['sqlite:']],
  [
    ['Is there a database already, and', 'less than some 100 grants/s?'],
    ['postgres:', 'mysql: mariadb:'],
  ],
  [
    ['May a failover, very rarely, grant', 'twice? (tokens are checked, or', 'the work is idempotent)'],
    ['redis:'],
  ],
  [
    ['Is there an etcd or a', 'ZooKeeper already?'],
    ['etcd:', 'zookeeper:'],
  ],
  [['Are there several independent', 'Redis servers?'], ['redis+quorum:']],
];

/** Which backend. */
function choosing(colour: Palette): ReturnType<Picture> {
  const parts: string[] = [];
  let y = 12;
  for (const [question, yes] of QUESTIONS) {
    const height = 22 + question.length * 17;
    const middle = y + height / 2;
    parts.push(
      svg.element('rect', { x: 12, y, width: 250, height, rx: 8, fill: colour.box, stroke: colour.soft }),
      ...lines(137, middle, question, colour.text),
      arrow(262, middle, 312, middle, colour.good),
      svg.text(286, middle - 5, 'yes', { fill: colour.good, 'text-anchor': 'middle' }),
      svg.element('rect', { x: 314, y: middle - 24, width: 116, height: 48, rx: 8, fill: colour.a }),
      ...lines(372, middle, yes, colour.text),
      arrow(137, y + height, 137, y + height + 26, colour.soft),
      svg.text(146, y + height + 17, 'no', { fill: colour.soft }),
    );
    y += height + 28;
  }
  parts.push(
    svg.element('rect', { x: 79, y, width: 116, height: 34, rx: 8, fill: colour.a }),
    ...lines(137, y + 17, ['etcd:'], colour.text),
  );
  return { title: 'Which backend to choose, question by question', height: y + 46, parts };
}

function lines(x: number, middle: number, texts: readonly string[], fill: string): string[] {
  const top = middle - ((texts.length - 1) * 17) / 2 + 5;
  return texts.map((text, index) => svg.text(x, top + index * 17, text, { fill, 'text-anchor': 'middle' }));
}

function bar(
  x: number,
  y: number,
  width: number,
  fill: string,
  label: string,
  colour: Palette,
  dash?: string,
): string {
  const rect = { x, y, width, height: 28, rx: 4, fill, stroke: colour.soft, 'stroke-dasharray': dash };
  return (
    svg.element('rect', rect) +
    svg.text(x + width / 2, y + 19, label, { fill: colour.text, 'text-anchor': 'middle' })
  );
}

function line(x1: number, y1: number, x2: number, y2: number, stroke: string, dash?: string): string {
  return svg.element('line', { x1, y1, x2, y2, stroke, 'stroke-width': 1.5, 'stroke-dasharray': dash });
}

function path(d: string, stroke: string): string {
  const [x2 = 0, y2 = 0] = d.split(/[ ,]+/).slice(-2).map(Number);
  const down = d.includes('C');
  return (
    svg.element('path', { d, fill: 'none', stroke, 'stroke-width': 1.5 }) +
    head(x2, y2, down ? 90 : -90, stroke)
  );
}

function arrow(x1: number, y1: number, x2: number, y2: number, stroke: string): string {
  const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
  return line(x1, y1, x2, y2, stroke) + head(x2, y2, angle, stroke);
}

function head(x: number, y: number, angle: number, fill: string): string {
  return svg.element('path', {
    d: 'M 2 0 L -7 -4 L -7 4 Z',
    fill,
    transform: `translate(${x} ${y}) rotate(${Math.round(angle)})`,
  });
}
