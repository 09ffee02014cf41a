"""A first collaboration, role by role.

Three clinics hold 100 handwritten digits each and may not pool them.  Each clinic is a `Party`, an `Analyst` aligns
what they share and trains one model, and every clinic gets a `PartyModel` back with which it predicts alone.
"""

from sklearn.ensemble import RandomForestClassifier

import datacollab as dc

# %%
# The tables.  In life every clinic has its own; here one table is dealt out.  Some rows that nobody holds serve as
# public rows, and the others as new patients to test on.

X, y = dc.datasets.load("digits")
split = dc.datasets.split_parties(X, y, n_parties=3, n_per_party=100, random_state=0)
X_rest, y_rest = split.remaining()
X_public, y_public = X_rest[:700], y_rest[:700]
X_new, y_new = X_rest[700:], y_rest[700:]

# %%
# **Agree.**  All parties take the same anchor: public rows, which the analyst never sees.  Each party makes sure that
# none of its own rows is among them.

anchor, anchor_target = dc.SampleAnchor(500, balanced=True).sample(X_public, y_public, random_state=0)
for name, (X_own, _) in split.items():
    print(name, "has", len(dc.find_private_rows(anchor, X_own)), "of its rows in the anchor")

# %%
# **Share.**  Each party fits an obfuscator of its own choice on its own rows, here a PCA with a different number of
# columns at each.  A share is all that leaves.

columns = {"party-0": 16, "party-1": 20, "party-2": 24}
parties = {
    name: dc.Party(name, dc.obfuscator("pca", n_components=columns[name])).fit(X_own, y_own)
    for name, (X_own, y_own) in split.items()
}
shares = [party.share(anchor, anchor_target) for party in parties.values()]
for share in shares:
    print(share)

# %%
# **Integrate and train.**  The analyst has the shares and nothing else.

analyst = dc.Analyst(dc.KTI(n_components=16, center=True), RandomForestClassifier(random_state=0))
collaboration = analyst.fit(shares)
print(collaboration)

# %%
# **Predict.**  Each party takes its model home, and compares it with one trained on its own 100 rows alone.

for name, party in parties.items():
    model = collaboration.party_model(name)
    together = (party.predict(X_new, model) == y_new).mean()
    alone = RandomForestClassifier(random_state=0).fit(*split[name]).score(X_new, y_new)
    print(f"{name}: accuracy {together:.3f} with the collaboration, {alone:.3f} alone")
