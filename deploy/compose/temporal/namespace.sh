# Container temporal-namespace of docker-compose.yml. A namespace that is there already is left as it is.
set -eu
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" ||
  temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention 30d
