#!/bin/sh
# Three rewards, one per rule. A rule only counts while no name has been lost, so an empty file earns nothing.
# The results by name also go to ctrf.json, the format in which per-test results are shown.
list=/app/names.txt
export LC_ALL=C

complete=1
for name in Beatrice Cordelia Miranda Ophelia Viola; do
    grep -q "^ *$name *\$" "$list" || { echo "missing: $name"; complete=0; }
done

sorted=0 unique=0 trimmed=0
if [ "$complete" = 1 ]; then
    sort -c "$list" && sorted=1
    [ -z "$(sed 's/^ *//; s/ *$//; /^$/d' "$list" | sort | uniq -d)" ] && unique=1
    grep -q '^ \| $\|^$' "$list" || trimmed=1
fi

result() { [ "$2" = 1 ] && status=passed || status=failed; printf '{"name":"%s","status":"%s","duration":0}' "$1" "$status"; }
passed=$((sorted + unique + trimmed))
printf '{"results":{"tool":{"name":"sh"},"summary":{"tests":3,"passed":%d,"failed":%d,"pending":0,"skipped":0,"other":0,"start":0,"stop":0},"tests":[%s,%s,%s]}}\n' \
    "$passed" $((3 - passed)) "$(result sorted $sorted)" "$(result unique $unique)" "$(result trimmed $trimmed)" \
    > /logs/verifier/ctrf.json
printf '{"sorted": %d, "unique": %d, "trimmed": %d}\n' "$sorted" "$unique" "$trimmed" > /logs/verifier/reward.json
cat /logs/verifier/reward.json
