import { EmptyState } from "../shared/notice.tsx";

export function NotFoundPage() {
  return (
    <main id="main">
      <EmptyState title="There is no such page">
        <a class="button" href="/jobs">
          Open the jobs
        </a>
      </EmptyState>
    </main>
  );
}
