/** Captures that no server can be held against, and why. */
export const EXEMPT: Readonly<Record<string, string>> = {
  '30-ha-migrate-stopped-task-log':
    'says close because that worker of pveproxy had served its last request before it is replaced',
};
