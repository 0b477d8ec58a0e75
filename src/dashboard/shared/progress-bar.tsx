/** Share of something that is done. */
export function ProgressBar({ fraction, label }: { readonly fraction: number; label: string }) {
  const percent = Math.floor(100 * fraction);
  return (
    <span
      class="bar work"
      role="progressbar"
      aria-label={label}
      aria-valuenow={percent}
      aria-valuemin={0}
      aria-valuemax={100}
    >
      <span style={{ width: `${percent}%` }} />
    </span>
  );
}
