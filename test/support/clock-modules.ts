/** Options by which a process of Node has a clock that is ahead of the machine's, or behind it. */
export function shiftedClock(ms: number): string {
  return nodeOptions(`const now = Date.now;
    globalThis.Date = class extends Date {
      constructor(...values) { values.length === 0 ? super(now() + ${ms}) : super(...values); }
      static now() { return now() + ${ms}; }
    };`);
}

/** Options by which the time that a process measures goes on so many times as fast. */
export function fastClock(factor: number): string {
  return nodeOptions(`const now = performance.now.bind(performance);
    performance.now = () => now() * ${factor};`);
}

/** Node imports the module before all others. */
function nodeOptions(module: string): string {
  return `--import=data:text/javascript,${encodeURIComponent(module)}`;
}
