import type { ComponentChildren } from "preact";

interface TableHeadProps {
  /** Titles with their classes. */
  readonly columns: Readonly<Record<string, string>>;
  /** Columns whose titles only screen readers read. */
  readonly children?: ComponentChildren;
}

export function TableHead({ columns, children }: TableHeadProps) {
  return (
    <thead>
      <tr>
        {Object.entries(columns).map(([title, look]) => (
          <th key={title} class={look}>
            {title}
          </th>
        ))}
        {children}
      </tr>
    </thead>
  );
}
