/** `AbsenceAlarms` in memory. */
import type { AbsenceAlarms } from '../../activities/kubernetes/absenceAlarm.ts';
import type { AbsenceAlarm } from '../../api/providerHealth.ts';

export function memoryAlarms(): AbsenceAlarms {
  const alarms = new Map<string, AbsenceAlarm>();
  return {
    readCollection: () => Promise.resolve(null),
    read: (provider) => Promise.resolve(alarms.get(provider) ?? null),
    write: (provider, alarm) => {
      if (alarm === null) alarms.delete(provider);
      else alarms.set(provider, alarm);
      return Promise.resolve();
    },
  };
}
