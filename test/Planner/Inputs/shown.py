"""What a search shows is compiled: shown.py TOPOLOGY FOLDER MODEL... compiles each plan to its distributed form.

A plan may be refused for cp or for separate devices of prompts alone.
"""
import json
import os
import subprocess
import sys

TOPOLOGY, FOLDER = sys.argv[1:3]
REFUSED = ("cp is ", "separate devices for prompts and for tokens")


def shown(config):
    """The layouts of the best plan, of the frontier and of the runners-up."""
    command = ["k2c-plan", config, "--topology", TOPOLOGY, "--search", "--json"]
    plan = json.loads(subprocess.check_output(command))
    others = plan["search"]["frontier"] + plan["search"]["runners_up"]
    return {plan["layout"]["text"]} | {each["layout"] for each in others}


def main(models):
    for model in models:
        accepted = refused = 0
        config = os.path.join(FOLDER, model, "config.json")
        for layout in sorted(shown(config)):
            done = subprocess.run(["k2c", "compile", config, "-o", "-", "--emit", "distributed", "--topology", TOPOLOGY,
                                   "--layout", layout], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode and not (done.returncode == 1 and any(each in done.stderr for each in REFUSED)):
                sys.exit(f"{model}, {layout}: exit code {done.returncode}: {done.stderr}")
            accepted, refused = accepted + (done.returncode == 0), refused + (done.returncode == 1)
        print(f"{model}: {accepted} compiled, {refused} refused for cp or two pools")


main(sys.argv[3:])
