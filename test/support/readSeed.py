"""Reads a seed image as a guest does: cloud-init's own NoCloud data source finds it, reads its files, and its own
user-data processor takes them apart. `readSeed.py <image> <folder>` prints JSON; `folder` is an empty one.

Only what a test machine has not got is stood in for: a drive (the image is a file, unpacked by bsdtar instead of
mounted) and the machine's own hints (kernel command line, DMI).
"""
import base64
import json
import os
import subprocess
import sys

from cloudinit import dmi, helpers, util, version
from cloudinit.sources import DataSourceNoCloud as nocloud

image, folder = sys.argv[1:]
scratch = os.path.join(folder, "cloud")
drive = os.path.join(folder, "drive")
os.mkdir(scratch)
os.mkdir(drive)


def find_devs_with(criteria=None, **_):
    """The drive, by what blkid says of the image."""
    found = subprocess.run(["blkid", "-p", "-o", "export", image], check=True, capture_output=True, text=True)
    return [image] if criteria in found.stdout.splitlines() else []


def mount_cb(device, callback, data=None, **_):
    """Callback's result on the files in the image."""
    assert device == image
    subprocess.run(["bsdtar", "-xf", image, "-C", drive], check=True)
    return callback(drive, data)


util.find_devs_with = find_devs_with
util.mount_cb = mount_cb
util.get_cmdline = lambda: ""
dmi.read_dmi_data = lambda _: None


def encoded(data):
    return base64.b64encode(data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")).decode()


def parts(message):
    """What cloud-init hands to its handlers, by type."""
    return [
        {
            "type": part.get_content_type(),
            "filename": part.get_filename(),
            "content": encoded(util.fully_decoded_payload(part)),
        }
        for part in message.walk()
        if part.get_content_maintype() != "multipart"
    ]


paths = helpers.Paths({"cloud_dir": scratch, "run_dir": scratch, "templates_dir": scratch})
source = nocloud.DataSourceNoCloud({}, None, paths)
found = source._get_data()  # get_data() goes on to write what it found below /run.
print(
    json.dumps(
        {
            "version": version.version_string(),
            "found": found,
            "seed": source.seed,
            "instanceId": source.get_instance_id(),
            "hostname": source.metadata["local-hostname"],
            "userData": encoded(source.get_userdata_raw()),
            "vendorData": encoded(source.get_vendordata_raw()),
            "userParts": parts(source.get_userdata()),
            "vendorParts": parts(source.get_vendordata()),
        }
    )
)
