/** Whether the page is light or dark now. */
import { computed, signal } from "@preact/signals";
import { theme } from "../state/preferences";
import type { Theme } from "./palette";

const query = matchMedia("(prefers-color-scheme: dark)");
const isDark = signal(query.matches);
query.addEventListener("change", () => {
  isDark.value = query.matches;
});

export const presentTheme = computed<Theme>(() => {
  if (theme.value === "light" || theme.value === "dark") return theme.value;
  return isDark.value ? "dark" : "light";
});
