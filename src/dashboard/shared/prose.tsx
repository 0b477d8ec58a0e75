/** A sentence of the documentation, whose parts between backticks are code. */
export function Prose({ text }: { readonly text: string }) {
  return (
    <>
      {text
        .split("`")
        .map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}
    </>
  );
}
