#!/bin/sh
# Every figure of speed, one after the other, for an idle machine with two cores: about 40 minutes in all.
#
#     sh benchmarks/speed_all.sh PYTHON PEER_PYTHON
#
# PYTHON has rarevote and its development tools, PEER_PYTHON has crowd-kit; RAREVOTE_DATA names the benchmark datasets,
# RAREVOTE_CROWDFM the weights of CrowdFM.
# Each writes its file in docs/evidence; at the end, the pages that show them are filled. SMALL=1 tries the commands that have a size on a small crowd.
set -eu
python=$1
peer=$2
here=$(cd "$(dirname "$0")/.." && pwd)
export PYTHONPATH="$here/src:$here"
cd "$here"

tasks=1000000
large=20000000
if [ "${SMALL:-}" ]; then tasks=40000 large=100000; fi

before=$(mktemp -d)
git worktree add --detach "$before/tree" bea7e02 # version 0.1.0
trap 'git worktree remove --force "$before/tree"; rm -rf "$before"' EXIT

timed() {
    begin=$(date +%s)
    echo "== $*"
    "$python" -m "$@"
    echo "== $(($(date +%s) - begin)) seconds"
}

timed benchmarks.passes --tasks "$tasks"                                                          # 1 minute
timed benchmarks.foundation --peer-python "$peer"                                                 # 10 minutes
timed benchmarks.netease --tasks "$tasks" --rounds 1 --ids numbers,text --seeds 0,1 --peer-python "$peer" # 15 minutes
timed benchmarks.files --tasks "$tasks"                                                           # 1 minute
timed benchmarks.before "$before/tree" --tasks "$large" --data "$before"                          # 4 minutes
timed benchmarks.one_machine --tasks "$large" --data "$before"                                    # 2 minutes
timed benchmarks.float32                                                                          # 2 minutes
timed benchmarks.dask_engine                                                                      # 4 minutes
timed benchmarks.rivals --peer-python "$peer"                                                     # 3 minutes
make docs-blocks
