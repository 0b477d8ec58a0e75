export function JobPage() {
  return <main id="main" />;
}
