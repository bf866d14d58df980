/** The drawings of the pages in the navigation, each the paths of a square of 16. */
const PATHS = {
  overview: "M2 13h12M4 11V7M8 11V3M12 11V5",
  pictures: "M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z",
  clusters:
    "M5 5m-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0M11.5 6m-1.5 0a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0M9 12m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0",
  map: "M3 12h.01M5.5 9h.01M4 6.5h.01M8 4h.01M10.5 5.5h.01M12.5 3.5h.01M9.5 11h.01M12 12.5h.01M11.5 9h.01M7 12.5h.01",
  duplicates: "M2 2h8v8H2zM6 10v4h8V6h-4",
  labels: "M2 7V2h5l7 7-5 5zM5 5h.01",
  issues: "M8 2l6.5 12h-13zM8 6.5v3.5M8 12h.01",
  cleanup: "M2 4h12M6 4V2h4v2M4 4l1 10h6l1-10",
  history: "M2.5 8a5.5 5.5 0 1 1 1.6 3.9M2.5 8L1 6.5M2.5 8L4 6.5M8 5v3l2 1.5",
  views: "M8 2l1.9 3.9 4.1.6-3 3 .7 4.3L8 11.8l-3.7 2 .7-4.3-3-3 4.1-.6z",
  settings: "M2 4h6M11 4h3M9.5 2.5v3M2 8h2M7 8h7M5.5 6.5v3M2 12h7M12 12h2M10.5 10.5v3",
  lock: "M4 7h8v6H4zM5.5 7V5a2.5 2.5 0 0 1 5 0v2",
  bell: "M4 11V7a4 4 0 0 1 8 0v4l1.5 1.5h-11zM6.5 14h3",
} as const;
export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
