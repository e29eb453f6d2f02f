/** Temporal as the controller sees it: which runs exist and what each was told. */
import type { Desk, DeskState, ProxyIdentity } from '../../controller/desk.ts';
import type { DesiredChanged } from '../../workflows/contract/messages.ts';
import type { ProxyRef } from '../../workflows/contract/proxy.ts';

export class FakeDesk implements Desk {
  /** Running runs by UID, with the news each received. */
  readonly runs = new Map<string, DesiredChanged[]>();
  /** Starts that made a run. */
  starts = 0;
  calls = 0;
  failures = 0;
  underWay = 0;
  mostAtOnce = 0;
  down = false;

  async ensure({ ref }: ProxyIdentity): Promise<void> {
    await this.#call(() => void this.#runOf(ref.uid));
  }
  async tell({ ref }: ProxyIdentity, news: DesiredChanged): Promise<void> {
    await this.#call(() => void this.#runOf(ref.uid).push(news));
  }
  async tellGone({ uid }: ProxyRef, news: DesiredChanged): Promise<void> {
    await this.#call(() => void this.runs.get(uid)?.push(news));
  }
  running(): Promise<ReadonlySet<string>> {
    if (this.down) return Promise.reject(new Error('14 UNAVAILABLE'));
    return Promise.resolve(new Set(this.runs.keys()));
  }
  state(): Promise<DeskState> {
    return Promise.resolve(this.down ? 'down' : 'up');
  }

  #runOf(uid: string): DesiredChanged[] {
    const run = this.runs.get(uid);
    if (run !== undefined) return run;
    this.starts++;
    const fresh: DesiredChanged[] = [];
    this.runs.set(uid, fresh);
    return fresh;
  }

  async #call(effect: () => void): Promise<void> {
    this.calls++;
    this.underWay++;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.underWay);
    await new Promise((resolve) => setImmediate(resolve));
    this.underWay--;
    if (!this.down) return effect();
    this.failures++;
    throw new Error('14 UNAVAILABLE: no connection');
  }
}
