"""Small clusters for tests of summarization, written for them."""

from variegate.text import Cluster, Document

STORM = (
    "Storm closes the harbour of Aarhus\n\n"
    "Monday, 3 March 2014\n\n"
    "A storm closed the harbour of Aarhus on Monday morning. Ferries to Odden stayed "
    "in port for nine hours. The wind reached thirty metres a second. Nobody was hurt, "
    "the police said. They had warned sailors on Sunday evening."
)
STORM_AGAIN = (
    "Ferries stop in Danish storm\n\n"
    "Nine ferries were cancelled when a storm closed the harbour of Aarhus. Trains "
    "ran as usual. Schools in the city stayed open. A storm closed the harbour of "
    "Aarhus on Monday morning. The mayor praised the harbour workers for their calm."
)
BAKERY = (
    "Old bakery opens again\n\n"
    "The oldest bakery of Ribe opened again after two years. Its ovens date from 1891. "
    "A young couple from Kolding bought the house last spring. He bakes and she sells "
    "the bread. Their rye bread won a prize in the first week."
)
BAKERY_AGAIN = (
    "Prize for rye bread from Ribe\n\n"
    "A young couple won a prize for the rye bread of their bakery in Ribe. The bakery "
    "opened again in May after two years. Visitors queue in the street on Saturdays. "
    "The couple plans to bake cakes as well."
)

STORM_CLUSTER = Cluster(
    [Document(STORM, "storm-1"), Document(STORM_AGAIN, "storm-2")],
    ["A storm closed the harbour of Aarhus on Monday. Nine ferries were cancelled."],
    "english",
    "storm",
    "storm",
)
BAKERY_CLUSTER = Cluster(
    [Document(BAKERY, "bakery-1"), Document(BAKERY_AGAIN, "bakery-2")],
    ["The oldest bakery of Ribe opened again. Its rye bread won a prize."],
    "english",
    "bakery",
    "bakery",
)
CLUSTERS = [STORM_CLUSTER, BAKERY_CLUSTER]
