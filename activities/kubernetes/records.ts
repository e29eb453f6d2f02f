/** What the steps read from and write to Kubernetes. Every read checks the UID, every patch carries it. */
import type { ProxyEvent, ProxyRef, ProxyStatus } from '../../workflows/contract/proxy.ts';
import type { Proxy } from '../../api/proxy.ts';

export interface ProxyRecords {
  /** `null` when the object is gone or another object has its name (UID differs). */
  get(ref: ProxyRef): Promise<Proxy | null>;
  /** Adds our finalizer; no effect when it is there or the object is under deletion. Throws NotFound `ObjectGone`. */
  addFinalizer(ref: ProxyRef): Promise<void>;
  /**
   * Removes our finalizer; `false` when the object was already gone. Throws Transient `StillWanted` when the object is
   * not under deletion: without the finalizer its VMs would be nobody's.
   */
  removeFinalizer(ref: ProxyRef): Promise<boolean>;
  /** Replaces our part of the status; `false` when the object is gone. Sends nothing when nothing differs. */
  publishStatus(ref: ProxyRef, status: ProxyStatus): Promise<boolean>;
  /** Records an Event; never throws. */
  recordEvent(ref: ProxyRef, event: ProxyEvent): Promise<void>;
  /** One key of a Secret as bytes. Throws Transient `CloudInitUnavailable` naming Secret and key. */
  secretKey(namespace: string, name: string, key: string): Promise<Uint8Array>;
}
