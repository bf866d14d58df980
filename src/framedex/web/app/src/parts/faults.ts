/** Why a file is not shown, by the issues that its row has. */
import { t } from "../texts";

/** The kinds of reasons by issue type. */
const FAULT_OF: Record<string, string> = {
  corrupted: "damaged",
  not_supported: "not_supported",
  over_limit: "over_limit",
  unreadable: "unreadable",
};

/** The issue types that have a reason in place of a value. */
export const ISSUES_OF_FILES = Object.keys(FAULT_OF);

/** Those whose files may be in order, so that no clean-up removes them. */
export const MAY_BE_IN_ORDER = ISSUES_OF_FILES.filter((each) => each !== "corrupted");

/** The columns of a row by which it is known that a file is not shown. */
export const FAULT_COLUMNS = [
  "is_corrupted_issue",
  "is_not_supported_issue",
  "is_over_limit_issue",
  "is_unreadable_issue",
] as const;
export type FaultFlags = Partial<Record<(typeof FAULT_COLUMNS)[number], boolean | null>>;

/** Return in words why a file with some issues is not shown; null for others. */
export function wordsOfIssues(issues: string[]): string | null {
  const issue = issues.find((each) => each in FAULT_OF);
  return issue === undefined ? null : (t.pictures.faults[FAULT_OF[issue] ?? ""] ?? null);
}

/** Return in words why the file of a row is not shown; null if it may be. */
export const wordsOfRow = (row: FaultFlags): string | null =>
  wordsOfIssues(ISSUES_OF_FILES.filter((_, index) => row[FAULT_COLUMNS[index] ?? "is_corrupted_issue"]));
