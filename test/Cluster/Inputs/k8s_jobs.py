"""Prints what k8s.yaml of a bundle asks for, and holds it to the bundle's manifest.

usage: k8s_jobs.py BUNDLE
"""
import json
import os
import sys

import yaml


def main(bundle):
    with open(os.path.join(bundle, "k8s.yaml"), encoding="utf8") as file:
        job, group = yaml.safe_load_all(file)
    with open(os.path.join(bundle, "manifest.json"), encoding="utf8") as file:
        manifest = json.load(file)
    spec = job["spec"]
    print(job["apiVersion"], job["kind"], job["metadata"]["name"], "slots", spec["slotsPerWorker"])
    launcher, worker = spec["mpiReplicaSpecs"]["Launcher"], spec["mpiReplicaSpecs"]["Worker"]
    starts, serves = (each["template"]["spec"]["containers"][0] for each in (launcher, worker))
    print("launcher", launcher["replicas"], starts["command"], starts["args"])
    resources = serves["resources"]
    assert resources["requests"] == resources["limits"] and starts["image"] == serves["image"]
    ranks = spec["slotsPerWorker"]
    wanted = ranks * (-(-manifest["predicted"]["peak_bytes"] // 2**20) + 64)
    assert resources["limits"]["memory"] == f"{wanted}Mi"
    print("worker", worker["replicas"], serves["command"], "cpu", resources["limits"]["cpu"])
    template = group["spec"]["leaderWorkerTemplate"]
    node = template["workerTemplate"]["spec"]["containers"][0]
    assert node["resources"] == resources and node["args"] == starts["args"]
    print(group["apiVersion"], group["kind"], group["metadata"]["name"], "groups", group["spec"]["replicas"])
    print("pods", template["size"], node["command"], [each["name"] for each in node["env"]])


main(*sys.argv[1:])
